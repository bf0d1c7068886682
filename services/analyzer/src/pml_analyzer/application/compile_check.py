"""The check that every approved program compiles, once per text."""

import logging
from collections import OrderedDict
from hashlib import sha256
from typing import Final

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.compiled import (
    Misfit,
    uncompiled,
    uncompiled_capability,
    uncompiled_instrumented,
)
from pml_analyzer.ports import Compiler
from pml_common.contracts.scope import Scope

log = logging.getLogger(__name__)

MOST: Final = 4096


class CompileCheck:
    """Compile results, cached for the `most` texts requested last."""

    def __init__(self, compiler: Compiler, most: int = MOST) -> None:
        self._compiler = compiler
        self._most = most
        self._kept: OrderedDict[bytes, Misfit | None] = OrderedDict()

    async def of(
        self, scope: Scope, code: str, outcome: Analysis | Rejection
    ) -> Analysis | Rejection:
        """Return the outcome, or a rejection if the program or a capability that it reaches does
        not compile.

        Raises the errors of Compiler.
        """
        if isinstance(outcome, Rejection):
            return outcome
        misfit = await self._misfit(scope, outcome.instrumented)
        if misfit is not None:
            authors = await self._misfit(scope, code)
            if authors is not None:
                return uncompiled(code, authors)
            log.error("what was instrumented does not compile: %s", misfit)
            return uncompiled_instrumented(misfit)
        for one in outcome.injected:
            misfit = await self._misfit(scope, one.instrumented)
            if misfit is not None:
                return uncompiled_capability(one.name, misfit)
        return outcome

    async def _misfit(self, scope: Scope, text: str) -> Misfit | None:
        key = sha256(text.encode()).digest()
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        misfit = self._kept[key] = await self._compiler.misfit(scope, text)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return misfit
