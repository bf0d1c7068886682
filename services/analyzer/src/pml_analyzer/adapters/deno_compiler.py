"""The compiler: V8 and the transpiler inside Deno, in processes without any permission."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from typing_extensions import override

from pml_analysis.check_results import CompileError
from pml_analyzer.adapters.child_process import ChildCommand, ChildLost, ChildProcess
from pml_analyzer.adapters.worker_pool import OutOfTime, WorkerLimits, WorkerPool, worker_pool
from pml_analyzer.ports import Compiler
from pml_common.contracts.scope import Scope

_SCRIPT: Final = Path(__file__).parents[1] / "compiler" / "compile.js"
_FLAGS: Final = (
    *("--quiet", "--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-lock"),
    *("--no-check", "--no-code-cache"),
)
_HEAP_MIB: Final = 256


def compiler_command(deno: str) -> ChildCommand:
    """Build the command: no permission, no cache on disk, and no evaluation but of its own
    script."""
    flags = (*_FLAGS, f"--v8-flags=--max-old-space-size={_HEAP_MIB}")
    environment = {"DENO_DIR": "/dev/null/none", "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    return ChildCommand((deno, "run", *flags, str(_SCRIPT)), environment)


@asynccontextmanager
async def deno_compiler(deno: str, limits: WorkerLimits) -> AsyncGenerator["DenoCompiler"]:
    """Run a compiler until the context exits."""
    async with worker_pool("compiler", compiler_command(deno), limits) as pool:
        yield DenoCompiler(pool)


class DenoCompiler(Compiler):
    """Compiles programs in a pool of Deno processes."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    @override
    async def compile_error(self, scope: Scope, code: str) -> CompileError | None:
        body = code.encode()

        async def talk(child: ChildProcess) -> CompileError | None:
            return _read(await child.request(body))

        try:
            return await self._pool.run(scope, talk)
        except OutOfTime:
            seconds = f"{self._pool.deadline_s:g} s of processor time"
            return CompileError(0, 0, f"the compiler takes more than {seconds}: make it simpler")
        except ChildLost:
            return CompileError(0, 0, "it ended the compiler, twice: make it simpler")

    async def health(self) -> str | None:
        """Return why there is no compiler, or None."""
        return await self._pool.health()


def _read(answer: bytes) -> CompileError | None:
    """Parse an answer. Raises ChildLost where it is invalid."""
    try:
        found = json.loads(answer)
        return None if found is None else CompileError(**found)
    except (ValueError, TypeError) as error:
        raise ChildLost(f"the compiler cannot be understood: {error}") from error
