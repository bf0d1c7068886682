"""Deno processes that run programs against recording tools; see `integration/recorder.js`."""

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final

DENO: Final = Path(sys.executable).with_name("deno")
_RECORDER: Final = Path(__file__).parents[1] / "integration" / "recorder.js"
_COMMAND: Final = (DENO, "run", "--no-prompt", "--no-remote", _RECORDER)
_BATCH: Final = 250
_SECONDS: Final = 120

Outcome = dict[str, Any] | str
"""The behaviour of a program (`end`, `calls`, `path`), or why it did not load."""


def run(programs: Sequence[str]) -> list[Outcome]:
    """Run each program; two processes at a time."""
    batches = [programs[at : at + _BATCH] for at in range(0, len(programs), _BATCH)]
    with ThreadPoolExecutor(2) as pool:
        return [outcome for batch in pool.map(_run, batches) for outcome in batch]


def _run(programs: Sequence[str]) -> list[Outcome]:
    done = subprocess.run(
        _COMMAND,
        input=json.dumps(programs) + "\n",
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class Recorder:
    """One process, which runs program after program."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(_COMMAND, stdin=pipe, stdout=pipe, text=True)

    def run(self, programs: Sequence[str]) -> list[Outcome]:
        """Run each program."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(programs) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
