"""Programs as approvers see them: the text that runs, and what was changed in the one sent."""

import json
from typing import Final, NamedTuple

from pml_gateway.domain.workflow.workflow_state import Workflow

LONGEST_CODE: Final = 4_000
"""Characters of the longest program that lists and answers show whole."""

_EXCESS: Final = 6
"""The most characters that JSON has for one."""


class ShownProgram(NamedTuple):
    """The text that runs. `notices` say what was changed in the text that was sent; none if it runs
    as it is."""

    code: str
    notices: tuple[str, ...]


def program_of(workflow: Workflow) -> ShownProgram | None:
    """Return the program of a workflow; None before its analysis."""
    analysis = workflow.analysis
    return None if analysis is None else ShownProgram(analysis.code, analysis.notices)


def changed_program_of(workflow: Workflow) -> ShownProgram | None:
    """Return the program of a workflow, if it is not as it was sent."""
    analysis = workflow.analysis
    return None if analysis is None or analysis.submitted_code is None else program_of(workflow)


def cut(code: str, longest: int = LONGEST_CODE) -> str:
    """Return the beginning of a program that is longer, marked with its length."""
    if len(code) <= longest:
        return code
    return f"{code[:longest]}\n…({len(code):,} characters in all)"


def cut_to_json(code: str, room: int) -> str | None:
    """Return a program, or its beginning, as far as its JSON has `room`; None where it has none."""
    if _json_length(code) <= room:
        return code
    end = min(len(code), room)
    while end > 0 and (excess := _json_length(f"{code[:end]}…") - room) > 0:
        end -= max(1, excess // _EXCESS)
    return f"{code[:end]}…" if end > 0 else None


def _json_length(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False))
