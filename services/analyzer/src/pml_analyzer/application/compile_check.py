"""The check that every approved program compiles, once per text."""

import logging
from collections import OrderedDict
from hashlib import sha256
from typing import Final

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.check_results import (
    CompileError,
    capability_does_not_compile,
    does_not_compile,
    instrumented_does_not_compile,
)
from pml_analyzer.ports import Compiler
from pml_common.contracts.scope import Scope

log = logging.getLogger(__name__)

MAX_CACHED: Final = 4096


class CompileCheck:
    """Compile results, cached for the `max_entries` texts requested last."""

    def __init__(self, compiler: Compiler, max_entries: int = MAX_CACHED) -> None:
        self._compiler = compiler
        self._max_entries = max_entries
        self._entries: OrderedDict[bytes, CompileError | None] = OrderedDict()

    async def of(self, scope: Scope, outcome: Analysis | Rejection) -> Analysis | Rejection:
        """Return the outcome, or a rejection if the program or a capability that it reaches does
        not compile.

        Raises the errors of Compiler.
        """
        if isinstance(outcome, Rejection):
            return outcome
        compile_error = await self._compile_error(scope, outcome.instrumented)
        if compile_error is not None:
            authors = await self._compile_error(scope, outcome.code)
            if authors is not None:
                return does_not_compile(outcome.source, authors)
            log.error("the instrumented program does not compile: %s", compile_error)
            return instrumented_does_not_compile(compile_error)
        for one in outcome.injected:
            compile_error = await self._compile_error(scope, one.instrumented)
            if compile_error is not None:
                return capability_does_not_compile(one.name, compile_error)
        return outcome

    async def _compile_error(self, scope: Scope, text: str) -> CompileError | None:
        key = sha256(text.encode()).digest()
        if key in self._entries:
            self._entries.move_to_end(key)
            return self._entries[key]
        compile_error = self._entries[key] = await self._compiler.compile_error(scope, text)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
        return compile_error
