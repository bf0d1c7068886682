"""Subjects encode type, scope and any entity name."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.bus import names
from pml_common.bus.names import Address
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import MessageType
from pml_common.contracts.scope import Scope

SCOPE = Scope(org="acme", project="web-app_2")
tokens = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,62}", fullmatch=True)
entities = st.text(min_size=1, max_size=names.TOKEN_LIMIT // 12)


@given(
    entry=st.sampled_from(catalog.MESSAGES),
    scope=st.builds(Scope, org=tokens, project=tokens),
    entity=entities,
)
def test_a_subject_parses_back_to_what_it_was_made_of(
    entry: MessageType[Message], scope: Scope, entity: str
) -> None:
    subject = names.subject_of(entry, scope, entity)
    assert names.parse_subject(subject) == Address(
        entry.kind, entry.owner, entry.name, entry.version, scope, entity
    )
    assert subject.count(".") == 7
    assert not set(subject) & set(" \t\r\n*>")
    assert subject.isascii()


def test_an_id_stays_readable() -> None:
    workflow = str(uuid4())
    assert names.subject_of(catalog.RUN_FINISHED, SCOPE, workflow) == (
        f"pml.evt.executor.run-finished.v2.acme.web-app_2.{workflow}"
    )


@pytest.mark.parametrize("entity", ["", "a" * (names.TOKEN_LIMIT + 1), "." * names.TOKEN_LIMIT])
def test_an_entity_that_does_not_fit_a_subject_is_refused(entity: str) -> None:
    with pytest.raises(ValueError, match="an entity takes 1 to"):
        names.entity_token(entity)


@pytest.mark.parametrize(
    ("subject", "complaint"),
    [
        ("pml.evt.gateway.x.v1.acme.web", "is not pml"),
        ("foo.evt.gateway.x.v1.acme.web.id", "is not pml"),
        ("pml.qry.gateway.x.v1.acme.web.id", "none of evt, cmd, run"),
        ("pml.evt.gateway.x.1.acme.web.id", "'1' is not a version"),
        ("pml.evt.gateway.x.vx.acme.web.id", "'vx' is not a version"),
        ("pml.evt.gateway.x.v1.AC.web.id", "org"),
    ],
)
def test_a_bad_subject_says_which_part_is_wrong(subject: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        names.parse_subject(subject)


def test_streams_and_filters_follow_the_owner() -> None:
    assert names.stream_of("evt", "executor") == "PML_EXECUTOR_EVT"
    assert names.stream_of("cmd", "executor") == "PML_EXECUTOR_CMD"
    assert names.stream_subjects("evt", "executor") == "pml.evt.executor.>"
    assert names.filter_of(catalog.RUN_WORKFLOW) == "pml.cmd.executor.run-workflow.v2.>"
    assert names.entity_filter(SCOPE, "a.b") == "pml.evt.*.*.*.acme.web-app_2.a%2Eb"
    assert names.query_subject(catalog.CALL_TOOL) == "pml.qry.gateway.call-tool.v3.*.*"
    one = names.query_subject(catalog.CALL_TOOL, SCOPE)
    assert one == "pml.qry.gateway.call-tool.v3.acme.web-app_2"
    assert names.of_any_scope(one) == names.query_subject(catalog.CALL_TOOL)
    assert names.query_subject(catalog.LIST_TOOLS, SCOPE) == "pml.qry.registry.list-tools.v1"
    assert names.dead_subject("learner-on-run-finished") == "pml.dead.learner-on-run-finished"
