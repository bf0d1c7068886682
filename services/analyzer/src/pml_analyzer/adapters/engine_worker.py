"""Main function of an engine process: analyses programs one after the other, until its input ends.
See child_process.py for the frames; they contain pickles, as both ends are this code."""

import os
import pickle
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from pml_analysis.analysis import analyze
from pml_analysis.capability_reading import read_capability
from pml_analyzer.adapters.inline_engine import analyzed
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import ToolDefinition

_HEAD: Final = 4
_PASSES: Final[dict[str, Callable[..., object]]] = {
    "analyze": analyzed,
    "read_capability": read_capability,
}


@dataclass(frozen=True)
class Job:
    """A pass and its arguments: `given`, and `tools` by the number they were first sent under.

    `sent` are tools of a new number, `dropped` the numbers that are not used any more.
    """

    what: str
    given: dict[str, Any]
    tools: int | None = None
    sent: Sequence[ToolDefinition] | None = None
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True)
class Done:
    """The result of a job, or its failure."""

    value: object = None
    failure: str | None = None


def main() -> None:
    """Answer until the input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints must not reach the frames
    analyze("return 1;", tools=(), policy=Policy())  # loads the grammar
    _write(answers, b"")
    tools: dict[int, Sequence[ToolDefinition]] = {}
    while (body := _read(requests)) is not None:
        job: Job = pickle.loads(body)  # noqa: S301 - the parent's, through a pipe of its own
        _write(answers, pickle.dumps(_done(job, tools)))


def _done(job: Job, tools: dict[int, Sequence[ToolDefinition]]) -> Done:
    for number in job.dropped:
        tools.pop(number, None)
    given = job.given
    if job.tools is not None:
        if job.sent is not None:
            tools[job.tools] = job.sent
        given = {**given, "tools": tools[job.tools]}
    try:
        return Done(_PASSES[job.what](**given))
    except Exception:  # noqa: BLE001 - sent to the parent
        return Done(failure=traceback.format_exc())


def _read(requests: BinaryIO) -> bytes | None:
    head = requests.read(_HEAD)
    return requests.read(int.from_bytes(head, "big")) if len(head) == _HEAD else None


def _write(answers: BinaryIO, body: bytes) -> None:
    answers.write(len(body).to_bytes(_HEAD, "big") + body)
    answers.flush()
