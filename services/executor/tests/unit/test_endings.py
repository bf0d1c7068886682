"""Endings of runs: messages, positions, and the event built from the journal."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from pml_common.binding.canonical import sha256_of_text
from pml_common.contracts import ids
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.grant import Grant
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import args_hash
from pml_common.contracts.trace import BranchDecision, TaskResult
from pml_executor.domain import events
from pml_executor.domain.endings import Ending, RunEnded, ending_of, failure_of, first_cause
from pml_executor.domain.finished import finished
from pml_executor.domain.instrumented import Instrumented
from pml_executor.domain.journal import Call, Diverged, RunJournal
from pml_executor.domain.protocol import BranchNote, LogNote, LoopNote, Threw

SCOPE = Scope(org="acme", project="webapp")
WORKFLOW = UUID("0197f0c4-0000-7000-8000-000000000001")
ROOT = ids.root_trace_id(WORKFLOW)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
COMMAND = RunWorkflow(
    command_id=ids.effect_id(WORKFLOW, "run-workflow"),
    scope=SCOPE,
    workflow_id=WORKFLOW,
    principal="agent:test",
    capability=CapabilityIdentity(capability_id=WORKFLOW, code_hash="c0de", name="fs:ensure"),
    intent="see to it",
    instrumented="",
    grant=Grant(
        scope=SCOPE,
        workflow_id=WORKFLOW,
        code_hash="c0de",
        text_hash=sha256_of_text(""),
        args_hash=args_hash({}),
        policy_revision="p",
        tools={"fs:read": "h", "fs:stat": "h"},
        expires_at=NOW + timedelta(hours=1),
    ),
    timeout_s=10,
)


def threw(name: str = "Error", message: str = "no", **more: object) -> Threw:
    fields = {"phase": "run", "call": None, "line": None, "column": None, **more}
    return Threw.model_validate({"kind": "threw", "name": name, "message": message, **fields})


@pytest.mark.parametrize(
    ("name", "message"),
    [("Error", "no"), ("", "no"), ("TypeError", "TypeError: no"), ("Mine", "Mine: no")],
)
def test_an_error_is_named_where_its_name_says_something(name: str, message: str) -> None:
    assert failure_of(threw(name), None, Instrumented("")) == WorkflowError(
        kind="user_error", message=message
    )


def test_a_program_that_does_not_load_has_a_syntax_error() -> None:
    where = threw("SyntaxError", "what", phase="load", line=1, column=3)
    error = failure_of(where, None, Instrumented("a b"))
    assert (error.kind, error.line, error.column) == ("syntax", 1, 3)


def test_an_error_is_told_in_its_authors_words_and_places() -> None:
    program = Instrumented('a;\n__pml.at("n1", f)(1);', ((3, 18), (19, 20)))
    where = threw("TypeError", "__pml.at(...) is not a function", line=2, column=17)
    assert failure_of(where, None, program) == WorkflowError(
        kind="user_error", message="TypeError: f is not a function", line=2, column=1
    )


def test_an_escaped_tool_error_is_told_in_the_tools_words() -> None:
    call = Call("n1", 0, "fs:read", {"path": "/x"}, "", None, ended=True)
    start = events.call_started(COMMAND, call, ROOT, 1.0)
    end = events.call_ended(start, ToolOutcome(status="tool_error", message="no file"), 2.0)
    where = threw("ToolError", "changed by the program", line=2)
    error = failure_of(where, (call, end), Instrumented("a;\nb;"))
    assert error == WorkflowError(
        kind="tool_error",
        message="no file",
        node_id="n1",
        line=2,
        tool="fs:read",
        arguments={"path": "/x"},
    )


def test_what_ends_a_run_is_told_from_what_only_interrupts_it() -> None:
    error = WorkflowError(kind="denied", message="no")
    assert ending_of(RunEnded(error)) == Ending(error=error)
    diverged = ending_of(Diverged("elsewhere", "n1"))
    assert diverged is not None
    assert diverged.error == WorkflowError(kind="diverged", message="elsewhere", node_id="n1")
    bug = ValueError("a bug")
    assert ending_of(bug) is None
    assert first_cause(ExceptionGroup("", [ExceptionGroup("", [bug]), KeyError()])) is bug


def test_a_fact_is_what_its_journal_says() -> None:
    journal = RunJournal()
    begin = events.run_started(COMMAND, 100.0)
    call = journal.call("n1", "fs:stat", {"path": "/x"})
    start = events.call_started(COMMAND, call, ROOT, 101.0)
    end = events.call_ended(start, ToolOutcome(status="ok", result={"exists": True}), 104.0)
    notes = [
        LoopNote(type="loop", node="l1"),
        BranchNote(type="decision", node="d1", outcome="true"),
        LoopNote(type="loop", node="l1"),
        BranchNote(type="decision", node="d1", outcome="true"),
        LogNote(type="log", level="info", message="hi"),
        LoopNote(type="loop", node="l1", counted=5),
        BranchNote(type="decision", node="d1", outcome="false", counted=5),
    ]
    noted = [events.noted(ROOT, journal, note, 105.0) for note in notes]
    lost = events.call_started(COMMAND, journal.call("n1", "fs:stat", {"path": "/y"}), ROOT, 106.0)
    close = events.run_ended(COMMAND, Ending(result=[1]), 100.0, 110.0)

    entries = [begin, start, end, *(entry for entry in noted if entry), lost, close]
    fact = finished(COMMAND, entries)

    assert (fact.success, fact.result, fact.error) == (True, [1], None)
    assert fact.executed_path == ("n1", "l1", "d1")
    assert fact.decisions == (
        BranchDecision(node_id="d1", outcome="true", times=2),
        BranchDecision(node_id="d1", outcome="false", times=5),
    )
    assert (fact.started_at, fact.duration_ms) == (100.0, 10.0)
    assert fact.trace_id == begin.trace_id == ids.root_trace_id(WORKFLOW)
    assert (fact.intent, fact.principal) == ("see to it", "agent:test")
    first, second = fact.task_results
    assert first == TaskResult(
        node_id="n1",
        occurrence=0,
        tool="fs:stat",
        args={"path": "/x"},
        success=True,
        result={"exists": True},
        trace_id=ids.call_trace_id(WORKFLOW, "n1", 0),
        parent_trace_id=begin.trace_id,
        started_at=101.0,
        duration_ms=3.0,
    )
    assert (second.occurrence, second.success, second.duration_ms) == (1, False, 4.0)
    assert second.error is not None
    assert second.error.kind == "outcome_unknown"


def test_no_fact_follows_from_an_open_journal() -> None:
    with pytest.raises(ValueError, match="not closed"):
        finished(COMMAND, [events.run_started(COMMAND, 1.0)])
