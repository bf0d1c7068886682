"""The console of a run in answers: what is shown, what is left out, and how the rest is read."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.executor import RunFinished
from pml_common.contracts.trace import LogLine
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.console import (
    MOST_BYTES,
    MOST_LINES,
    ConsolePage,
    console_notices,
    console_page,
    shown_console,
)
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.responses import execute_response
from pml_gateway.domain.api.task_results import GetTaskResult, console_response
from pml_gateway.domain.api.views import view_of
from pml_gateway.domain.workflow.events import Analyzed
from services.gateway.tests.support.builders import AT, analyzed, finished, workflow
from services.gateway.tests.support.steps import after

NEW = workflow()
ID = NEW.workflow_id


def run_with(*messages: str, omitted: int = 0) -> RunFinished:
    lines = tuple(LogLine(level="info", message=message) for message in messages)
    return finished(NEW, result=1).model_copy(update={"logs": lines, "logs_omitted": omitted})


def test_an_answer_has_the_last_lines_and_says_how_many_it_leaves_out() -> None:
    run = run_with(*(str(n) for n in range(300)), omitted=19_700)
    lines, omitted = shown_console(run)
    assert [line.message for line in lines] == [str(n) for n in range(100, 300)]
    assert omitted == 19_800
    assert console_notices(ID, run) == (
        "the program wrote 20,000 lines to its console; the first 19,800 are left out of this "
        "answer, which has the last 200 (200 lines and 20,000 bytes at most). pml_get_task_result "
        f"with part: console, or GET /api/workflows/{ID}/console, returns the last 300 in pages",
    )
    all_kept = run_with(*(str(n) for n in range(300)))
    assert console_notices(ID, all_kept)[0].endswith("returns all in pages")
    assert console_notices(ID, run_with("a", "b")) == ()


def test_every_answer_counts_what_it_leaves_out() -> None:
    run = run_with(*(str(n) for n in range(300)), omitted=19_700)
    (ended, _) = after(NEW, Analyzed(analyzed(NEW), AT), run)
    answer = execute_response(ended, None)
    assert (answer.logs_omitted, len(answer.logs)) == (19_800, 200)
    assert answer.notices == console_notices(ID, run)
    view = view_of(ended)
    assert (view.logs_omitted, view.logs) == (19_800, answer.logs)


@given(texts=st.lists(st.tuples(st.sampled_from("xé😀"), st.integers(0, 30_000)), max_size=40))
def test_shown_lines_stay_within_their_bytes(texts: list[tuple[str, int]]) -> None:
    run = run_with(*(character * length for character, length in texts))
    lines, omitted = shown_console(run)
    assert len(lines) + omitted == len(texts)
    assert len(lines) <= MOST_LINES
    assert sum(len(line.message.encode()) for line in lines) <= MOST_BYTES
    assert bool(lines) == bool(texts)


def test_one_line_that_is_too_long_is_cut_visibly() -> None:
    (line,), omitted = shown_console(run_with("a", "é" * MOST_BYTES))
    assert line.message.strip("é") == "…"
    assert omitted == 1


def test_pages_have_every_line_that_was_kept() -> None:
    run = run_with("a", "b", "c", omitted=7)
    page = console_page(run, 0, 2)
    assert page == ConsolePage(lines=run.logs[:2], offset=0, total=3, lost=7, next_offset=2)
    last = console_page(run, 2, 2)
    assert last == ConsolePage(lines=run.logs[2:], offset=2, total=3, lost=7)
    assert console_page(None, 0, 2) == ConsolePage(lines=(), offset=0, total=0, lost=0)


def _asked(**more: Any) -> GetTaskResult:
    return GetTaskResult.model_validate({"workflow_id": str(ID), "part": "console", **more})


def test_an_agent_pages_the_console_as_text_or_json() -> None:
    (ended, _) = after(NEW, Analyzed(analyzed(NEW), AT), run_with("a", "b", omitted=7))
    answer = console_response(ended, _asked(format="text", limit=8))
    assert answer.page is not None
    assert (answer.status, answer.logs_omitted) == ("success", 7)
    assert (answer.page.text, answer.page.next_offset) == ("info: a\n", 8)
    rest = console_response(ended, _asked(format="text", offset=8)).page
    assert rest is not None
    assert (rest.text, rest.next_offset) == ("info: b", None)
    whole = console_response(ended, _asked()).page
    assert whole is not None
    assert whole.text == ('[{"level": "info", "message": "a"}, {"level": "info", "message": "b"}]')


def test_a_console_that_cannot_be_paged_so_says_why() -> None:
    (running, _) = after(NEW, Analyzed(analyzed(NEW), AT))
    page = console_response(running, _asked(format="text")).page
    assert page is not None
    assert (page.text, page.total) == ("", 0)
    with pytest.raises(InvalidRequest, match="the console has 0 characters"):
        console_response(running, _asked(format="text", offset=1))
    with pytest.raises(InvalidRequest, match="part console is of the whole workflow"):
        console_response(running, _asked(task_id=f"{UUID(int=1)}"))


def test_a_notice_is_said_once() -> None:
    plain = ExecuteResponse(status="success", result=1)
    assert plain.with_notices() is plain
    assert "notices" not in plain.to_json()
    noted = plain.with_notices("old name").with_notices("old name", "yanked")
    assert noted.notices == ("old name", "yanked")
    assert '"notices":["old name","yanked"]' in noted.to_json()


def test_what_a_result_lost_is_noted_before_what_its_console_did() -> None:
    run = run_with("a", omitted=1).model_copy(update={"notices": ("result.a was NaN",)})
    (ended, _) = after(NEW, Analyzed(analyzed(NEW), AT), run)
    notices = execute_response(ended, None).notices
    assert notices == ("result.a was NaN", *console_notices(ID, run))
