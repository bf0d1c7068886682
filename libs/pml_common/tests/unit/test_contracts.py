"""The catalog is complete: an example for every message, names that fit the bus."""

import json
import re
from pathlib import Path
from typing import get_args
from uuid import UUID

import pytest
from pydantic import BaseModel, ValidationError

from pml_common.contracts import catalog, ids
from pml_common.contracts.base import Message
from pml_common.contracts.capability import Usage
from pml_common.contracts.curation import SaveCapability
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.gateway import (
    CallTool,
    ExecutionRequested,
    ToolsListed,
    WorkflowAwaited,
)
from pml_common.contracts.grant import Grant
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityPage
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Edge, Node, TaskNode
from pml_common.contracts.tool import ToolAnnotations, ToolDefinition

EXAMPLES = Path(__file__).parents[2] / "examples"
SCOPE = Scope(org="acme", project="webapp")


def _models() -> dict[str, type[BaseModel]]:
    models: dict[str, type[BaseModel]] = {
        f"{m.kind}.{m.owner}.{m.name}.v{m.version}": m.model for m in catalog.MESSAGES
    }
    for query in catalog.QUERIES:
        models[f"qry.{query.owner}.{query.name}.v{query.version}"] = query.model
        models[f"qry.{query.owner}.{query.name}.v{query.version}.reply"] = query.reply
    return models


def _example(name: str) -> str:
    return (EXAMPLES / f"{name}.json").read_text(encoding="utf-8")


def test_every_message_has_an_example_and_no_example_is_left_over() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.json")} == set(_models())


@pytest.mark.parametrize("name", sorted(_models()))
def test_an_example_is_exactly_what_the_model_reads_and_writes(name: str) -> None:
    parsed = _models()[name].model_validate_json(_example(name))
    assert parsed.model_dump(mode="json") == json.loads(_example(name))


@pytest.mark.parametrize("name", sorted(_models()))
def test_fields_that_a_newer_sender_added_are_ignored(name: str) -> None:
    model = _models()[name]
    newer = {**json.loads(_example(name)), "added_later": {"x": 1}}
    assert model.model_validate(newer) == model.model_validate_json(_example(name))


def test_every_kind_of_node_is_in_an_example_with_its_invocation_path() -> None:
    page = CapabilityPage.model_validate_json(_example("qry.registry.list-capabilities.v2.reply"))
    nodes = [node for record in page.capabilities for node in record.structure.nodes]
    kinds = get_args(get_args(Node)[0])
    assert {type(node) for node in nodes} == set(kinds)
    assert any(node.via for node in nodes if isinstance(node, TaskNode))


def test_every_message_name_is_a_subject_token() -> None:
    for entry in (*catalog.MESSAGES, *catalog.QUERIES):
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", entry.name)
        assert entry.owner in catalog.SERVICES


_OWN_EVENTS = {
    catalog.GATEWAY_ON_CALL_ENDED.durable,
    catalog.REGISTRY_ON_CAPABILITY_CHANGED.durable,
    catalog.REGISTRY_ON_CATALOG_CHANGED.durable,
}
"""Work on what the same service said, by one replica, apart from the handler that said it."""


def test_consumers_read_events_of_others_and_commands_of_their_own() -> None:
    durables = [consumer.durable for consumer in catalog.CONSUMERS]
    assert len(set(durables)) == len(durables)
    for consumer in catalog.CONSUMERS:
        assert consumer.message in catalog.MESSAGES
        is_own = consumer.service == consumer.message.owner
        assert is_own == (consumer.message.kind == "cmd" or consumer.durable in _OWN_EVENTS) or (
            consumer.message.until_handled
        )


@pytest.mark.parametrize("named", [{}, {"workflow_id": UUID(int=1), "reference": "fs:read"}])
def test_a_workflow_or_a_capability_is_saved(named: dict[str, object]) -> None:
    asked = {"scope": SCOPE, "principal": "agent-7", "name": "fs:read", **named}
    with pytest.raises(ValidationError, match="one of the two"):
        SaveCapability.model_validate(asked)


def test_the_type_of_a_message_is_its_catalog_entry() -> None:
    finished = RunFinished.model_validate_json(_example("evt.executor.run-finished.v2"))
    assert catalog.type_of(finished) is catalog.RUN_FINISHED
    assert catalog.RUN_FINISHED.kind == "evt"
    assert catalog.RUN_WORKFLOW.kind == "cmd"
    assert catalog.LEARNER_ON_RUN_FINISHED.durable == "learner-on-run-finished"


def test_a_model_outside_the_catalog_has_no_type() -> None:
    with pytest.raises(KeyError):
        catalog.type_of(Message(scope=SCOPE))


def test_the_entity_of_a_message_is_the_value_of_its_entity_field() -> None:
    requested = ExecutionRequested.model_validate_json(
        _example("evt.gateway.execution-requested.v1")
    )
    listed = ToolsListed.model_validate_json(_example("evt.gateway.tools-listed.v1"))
    learned = LearningUpdated.model_validate_json(_example("evt.learner.learning-updated.v1"))
    assert requested.entity == str(requested.workflow_id)
    assert listed.entity == "fs"
    assert learned.entity == str(learned.capability_id)


def test_the_message_id_is_the_id_of_the_event_command_or_signal() -> None:
    run = catalog.RUN_WORKFLOW.model.model_validate_json(_example("cmd.executor.run-workflow.v2"))
    finished = RunFinished.model_validate_json(_example("evt.executor.run-finished.v2"))
    assert run.message_id == run.command_id
    assert finished.message_id == finished.event_id
    awaited = WorkflowAwaited.model_validate_json(_example("sig.gateway.workflow-awaited.v1"))
    assert awaited.message_id == awaited.signal_id
    with pytest.raises(NotImplementedError):
        _ = Message(scope=SCOPE).message_id


def test_ids_agree_for_equal_names_and_differ_across_scopes() -> None:
    other = Scope(org="acme", project="mobile")
    assert ids.workflow_id(SCOPE, "ana", "k") == ids.workflow_id(SCOPE, "ana", "k")
    assert ids.workflow_id(SCOPE, "ana", "k") != ids.workflow_id(other, "ana", "k")
    assert ids.capability_id(SCOPE, "k") != ids.former_workflow_id(SCOPE, "k")
    assert ids.scoped_id(SCOPE, "a", "b") != ids.scoped_id(SCOPE, "a\x1fb", "")


def test_a_key_is_its_principals_own() -> None:
    """However both are spelt: nothing runs together."""
    of = {("ana", "k"), ("ben", "k"), ("a", "nak"), ("ana\x1fk", ""), ("ana", "\x1fk"), ("", "k")}
    known = {ids.workflow_id(SCOPE, *each) for each in of}
    assert len(known | {ids.former_workflow_id(SCOPE, key) for _, key in of}) == 6 + 4


def test_the_calls_of_a_workflow_have_ids_of_their_own() -> None:
    workflow = ids.workflow_id(SCOPE, "ana", "k")
    known = {
        ids.root_trace_id(workflow),
        ids.call_trace_id(workflow, "n1", 0),
        ids.call_trace_id(workflow, "n1", 1),
        ids.call_trace_id(workflow, "n2", 0),
    }
    assert len(known) == 4


@pytest.mark.parametrize("token", ["", "Acme", "a.b", "a b", "*", ">", "-a", "x" * 64])
def test_a_scope_part_that_could_leave_its_subject_is_refused(token: str) -> None:
    with pytest.raises(ValidationError):
        Scope(org=token, project="webapp")


def test_a_scope_prints_as_the_head_of_a_qualified_name() -> None:
    assert str(SCOPE) == "acme.webapp"


def test_a_tool_that_changed_in_any_way_has_another_hash() -> None:
    tool = ToolDefinition(server="fs", name="read", description="Read a file.")
    assert tool.tool_id == "fs:read"
    assert tool.definition_hash == tool.model_copy().definition_hash
    changed = [
        tool.model_copy(update={"description": "Read any file."}),
        tool.model_copy(update={"input_schema": {"type": "object", "required": ["path"]}}),
        tool.model_copy(update={"annotations": ToolAnnotations(read_only=True)}),
    ]
    assert len({tool.definition_hash, *(one.definition_hash for one in changed)}) == 4


def test_a_signature_covers_everything_but_itself() -> None:
    grant = RunWorkflow.model_validate_json(_example("cmd.executor.run-workflow.v2")).grant
    resigned = grant.model_copy(update={"signature": "00"})
    widened = grant.model_copy(update={"tools": {**grant.tools, "fs:delete": "0" * 64}})
    assert resigned.signed_bytes() == grant.signed_bytes()
    assert widened.signed_bytes() != grant.signed_bytes()
    assert len({grant.digest(), resigned.digest(), widened.digest()}) == 3
    assert Grant.model_validate_json(grant.model_dump_json()).signed_bytes() == grant.signed_bytes()


def test_the_key_of_a_call_follows_from_what_it_is() -> None:
    call = CallTool.model_validate_json(_example("qry.gateway.call-tool.v3"))
    again = call.model_copy(update={"attempt": "again"})
    assert call.idempotency_key == ids.call_trace_id(call.workflow_id, "n3", 0)
    assert again.idempotency_key not in (call.idempotency_key, call.workflow_id)


def test_an_edge_is_written_with_the_sources_field_name() -> None:
    edge = Edge(from_="n1", to="d1", type="sequence")
    assert edge.model_dump(mode="json")["from"] == "n1"
    assert Edge.model_validate({"from": "n1", "to": "d1", "type": "sequence"}) == edge


def test_the_success_rate_of_an_unused_capability_is_zero() -> None:
    assert Usage().success_rate == 0.0
    assert Usage(count=4, success_count=3).success_rate == 0.75
