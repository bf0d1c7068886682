"""Errors that end the command: one line on stderr, no traceback."""

import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

from pml_common.text.visible import LAYOUT, visible

USAGE, FAILED, UNREACHABLE, APPROVAL_REQUIRED, STILL_RUNNING = 2, 1, 4, 3, 5
"""Exit codes; 0 means success only."""

_KINDS = {USAGE: "usage", UNREACHABLE: "unreachable"}
_ASKING = ("--json", "--format=json", "--stdin-jsonl")


class CommandError(Exception):
    """An error and its remedy; `kind` identifies it for programs."""

    def __init__(self, message: str, exit_code: int = FAILED, kind: str | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.kind = kind or _KINDS.get(exit_code, "failed")


def unreadable(error: ValueError) -> CommandError | None:
    """Return the error to print where an answer has not the form that the command reads; None for
    any other."""
    from pydantic import ValidationError

    from pml_common.contracts.fault_words import faults_of

    if not isinstance(error, ValidationError):
        return None
    return CommandError(
        f"the answer has not the form that this command reads ({'; '.join(faults_of(error))}): use "
        "the command of the gateway's version"
    )


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether the arguments ask for JSON output, even if they are otherwise invalid."""
    return not {"--format json", *_ASKING}.isdisjoint([*words, *map(" ".join, pairwise(words))])


def fail(error: CommandError, *, as_json: bool) -> NoReturn:
    """Exit with a line on stderr and, with `as_json`, a line of JSON on stdout."""
    if as_json:
        body = {"kind": error.kind, "message": str(error)}
        sys.stdout.write(json.dumps({"status": "error", "error": body}) + "\n")
    sys.stderr.write(f"pml: {visible(str(error), LAYOUT)}\n")
    raise SystemExit(error.exit_code)
