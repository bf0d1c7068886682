"""The JavaScript that Workers start with (runtime/build.ts)."""

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import NamedTuple

_TIMEOUT_S = 20.0
_FLAGS = ("--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-lock", "--no-check")


class WorkerTexts(NamedTuple):
    """The code of a Worker for one program, and that of the standing Worker of realms."""

    worker: str = ""
    realm: str = ""


class WorkerCode:
    """Code built from one folder's sources, once, at the first call."""

    def __init__(self, deno: str, runtime: Path) -> None:
        self._argv = (deno, "run", *_FLAGS, str(runtime / "build.ts"))
        self._built: WorkerTexts | None = None
        self._building = asyncio.Lock()

    async def __call__(self) -> WorkerTexts:
        """Return the code. Raises OSError."""
        async with self._building:
            if self._built is None:
                async with asyncio.timeout(_TIMEOUT_S):
                    self._built = await self._build()
        return self._built

    async def _build(self) -> WorkerTexts:
        process = await asyncio.create_subprocess_exec(
            *self._argv, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        try:
            texts, problem = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        if process.returncode != 0 or not texts:
            said = problem.decode(errors="replace").strip()
            raise OSError(f"the code of Workers cannot be built: {said}")
        return WorkerTexts(*json.loads(texts))
