"""Errors the command ends with: one line on stderr, no traceback."""

import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

from pml_common.text.visible import LAYOUT, visible

USAGE, FAILED, UNREACHABLE, APPROVAL_REQUIRED, STILL_RUNNING = 2, 1, 4, 3, 5
"""Exit codes; 0 is success alone."""

_KINDS = {USAGE: "usage", UNREACHABLE: "unreachable"}
_ASKING = ("--json", "--format=json", "--stdin-jsonl")


class CommandError(Exception):
    """What went wrong and what to do about it; `kind` is what a program tells it by."""

    def __init__(self, message: str, exit_code: int = FAILED, kind: str | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.kind = kind or _KINDS.get(exit_code, "failed")


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether what was typed asks for JSON, right or wrong as the rest of it may be."""
    return not {"--format json", *_ASKING}.isdisjoint([*words, *map(" ".join, pairwise(words))])


def fail(error: CommandError, *, as_json: bool) -> NoReturn:
    """End with a line on stderr; with `as_json`, and a line of JSON on stdout."""
    if as_json:
        told = {"kind": error.kind, "message": str(error)}
        sys.stdout.write(json.dumps({"status": "error", "error": told}) + "\n")
    sys.stderr.write(f"pml: {visible(str(error), LAYOUT)}\n")
    raise SystemExit(error.exit_code)
