"""Runs and calls that a grant does not cover."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from pml_common.bus.identity import all_services_keys
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.scope import Scope
from pml_common.signing import TrustedKeys
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.app import is_signed
from pml_executor.domain.journal import Call
from pml_executor.domain.refusal import refused_call, refused_in_dry_run, refused_run
from services.executor.tests.support.builders import READ, REPORT, make_command
from services.executor.tests.support.harness import FORGED, deliver, make_dependencies
from services.executor.tests.support.memory_sandbox import MemoryPool
from services.executor.tests.support.memory_tools import MemoryTools

OWN = "return args.n;"
WRITE = Call("n1", 0, "fs:write", {"path": "/evil"}, "", None, ended=False)


def why_not(command: RunWorkflow, **grant: object) -> str | None:
    """Return the message with which a run is refused under a changed grant."""
    changed = command.model_copy(update={"grant": command.grant.model_copy(update=grant)})
    error = refused_run(changed, before_expiry(command))
    assert error is None or error.kind == "denied"
    return error and error.message


def before_expiry(command: RunWorkflow) -> datetime:
    return command.grant.expires_at - timedelta(seconds=1)


def test_a_run_starts_under_its_own_grant() -> None:
    assert why_not(make_command(OWN, {"n": 1}, injected=[READ, REPORT])) is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"workflow_id": UUID(int=7)}, "belongs to another workflow"),
        ({"scope": Scope(org="acme", project="other")}, "belongs to another workflow"),
        ({"code_hash": "beef"}, "was given for other code"),
        ({"text_hash": "beef"}, "was given for another text"),
        ({"args_hash": "beef"}, "was given for other arguments"),
    ],
)
def test_a_run_needs_a_grant_of_its_own(changed: dict[str, object], message: str) -> None:
    assert message in (why_not(make_command(OWN, {"n": 1}), **changed) or "")


async def test_a_run_whose_grant_no_gateway_signed_does_not_start() -> None:
    pool, command = MemoryPool({}), make_command(OWN)
    forged = command.grant.model_copy(update={"signature": FORGED})
    deps = make_dependencies(MemoryBus(), pool, MemoryTools())
    (fact,) = await deliver(command.model_copy(update={"grant": forged}), deps)
    assert isinstance(fact, RunFinished)
    assert fact.error is not None
    assert fact.error.message == "the grant's signature is no gateway's"
    assert pool.leased == 0


def test_a_grant_is_as_a_gateway_signed_it() -> None:
    trusted = TrustedKeys(key.public for key in all_services_keys())
    grant = make_command(OWN).grant
    assert is_signed(trusted, grant)
    assert not is_signed(trusted, grant.model_copy(update={"approved_by": "mallory"}))
    assert not is_signed(TrustedKeys(), grant)


def test_a_grant_ends_when_it_says() -> None:
    command = make_command(OWN)
    at_its_end = refused_run(command, command.grant.expires_at)
    assert at_its_end is not None
    assert at_its_end.message.startswith("the grant expired at 20")
    assert refused_run(command, before_expiry(command)) is None


@pytest.mark.parametrize(
    ("submitted", "message"),
    [
        ({"instrumented": "return args.m;"}, "another text; submit"),
        ({"instrumented": OWN + " "}, "another text; submit"),
        ({"args": {"n": True}}, "other arguments; submit"),
        ({"args": {"n": 1, "m": 0}}, "other arguments; submit"),
    ],
)
def test_what_runs_is_what_was_approved(submitted: dict[str, object], message: str) -> None:
    changed = make_command(OWN, {"n": 1}).model_copy(update=submitted)
    assert message in (why_not(changed) or "")


@pytest.mark.parametrize("granted", [{}, {str(REPORT.capability_id): "beef"}])
def test_a_run_needs_a_grant_for_each_capability_as_it_is(granted: dict[str, str]) -> None:
    command = make_command(OWN, injected=[READ, REPORT])
    own = {str(READ.capability_id): READ.code_hash}
    refused = why_not(command, capabilities=own | granted)
    assert refused == "the grant does not cover capability report:weekly as it is now"


@pytest.mark.parametrize("granted", [{}, {str(REPORT.capability_id): "beef"}])
def test_a_run_needs_a_grant_for_the_text_of_each_capability(granted: dict[str, str]) -> None:
    command = make_command(OWN, injected=[READ, REPORT])
    texts = {str(READ.capability_id): command.grant.texts[str(READ.capability_id)]}
    refused = why_not(command, texts=texts | granted)
    assert refused == "the grant was given for another text of capability report:weekly"


def test_another_text_of_a_capability_is_refused_under_its_hash() -> None:
    command = make_command(OWN, injected=[READ])
    other = READ.model_copy(update={"instrumented": READ.instrumented + " "})
    refused = why_not(command.model_copy(update={"injected": (other,)}))
    assert refused == "the grant was given for another text of capability fs:read_json"


def test_a_capability_that_only_the_run_could_name_is_refused_where_it_is_called() -> None:
    error = refused_call(make_command(OWN), "cap:fs_read_json", "n3")
    assert error is not None
    assert (error.kind, error.tool, error.node_id) == ("denied", "cap:fs_read_json", "n3")
    assert error.message.startswith("cap:fs_read_json was not seen when the program was analysed")


def dry(command: RunWorkflow) -> RunWorkflow:
    grant = command.grant.model_copy(update={"dry_run": True})
    return command.model_copy(update={"grant": grant})


def test_a_dry_run_calls_the_tools_that_its_grant_names() -> None:
    command = dry(make_command(OWN, tools=("fs:read", "fs:stat")))
    assert refused_call(command, "fs:read", "n1") is None
    error = refused_call(command, "fs:write", "n2")
    assert error is not None
    assert (error.kind, error.tool, error.node_id) == ("denied", "fs:write", "n2")
    assert "(fs:read, fs:stat)" in error.message
    nothing = refused_call(dry(make_command(OWN, tools=())), "fs:write", "n2")
    assert nothing is not None
    assert "(none)" in nothing.message


def test_a_person_may_be_asked_about_any_tool_unless_the_run_is_dry() -> None:
    command = make_command(OWN, tools=())
    assert refused_call(command, "fs:write", "n1") is None
    assert refused_in_dry_run(command, WRITE, "not seen") is None
    error = refused_in_dry_run(dry(command), WRITE, "not seen")
    assert error is not None
    assert (error.kind, error.message, error.node_id) == ("denied", "not seen", "n1")
    assert (error.tool, error.arguments) == ("fs:write", {"path": "/evil"})
