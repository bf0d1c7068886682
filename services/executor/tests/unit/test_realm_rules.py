"""Rules of realms: which runs have one, and what their Worker's modules are called."""

import json
from typing import Any
from urllib.parse import unquote

import pytest

from pml_common.contracts.grant import GrantedCall, GrantedRest
from pml_executor.domain.pool import process_owner
from pml_executor.domain.realms import Realms, suits_realm
from services.executor.tests.support.builders import capability, make_command

CALL = GrantedCall(node_id="n1", occurrence=0, tool="a:b", definition_hash="d", args_hash="a")
REST = GrantedRest(node_id="n1", tool="a:b", definition_hash="d")


def test_a_run_that_policy_allows_has_a_realm() -> None:
    assert suits_realm(make_command("return await mcp.api.a({});"))


@pytest.mark.parametrize("more", [{"approved_by": "ana"}, {"calls": (CALL,)}, {"rest": (REST,)}])
def test_a_run_that_a_person_granted_more_has_none(more: dict[str, Any]) -> None:
    command = make_command("return 1;")
    grant = command.grant.model_copy(update=more)
    command = command.model_copy(update={"grant": grant})
    assert not suits_realm(command)
    assert (process_owner(command) is None) == ("approved_by" in more)


@pytest.mark.parametrize(
    "code",
    ["return new URL(args.x);", "return structuredClone(args);", "return globalThis['U' + 'RL'];"],
)
def test_a_program_or_capability_that_names_what_realms_lack_has_none(code: str) -> None:
    assert not suits_realm(make_command(code))
    assert not suits_realm(make_command("return 1;", injected=[capability("a:b", code)]))


def test_a_word_that_only_contains_such_a_name_is_another() -> None:
    assert suits_realm(make_command("const myURL = 1, EventList = []; return [myURL, EventList];"))


def test_the_modules_of_the_standing_worker_have_names_that_no_program_knows() -> None:
    realms = Realms("5ecret")
    code = 'import * as vm from "node:vm"; import { x } from "node:module";'
    hidden = 'import * as vm from "pml-5ecret:vm"; import { x } from "pml-5ecret:module";'
    assert realms.hidden(code) == hidden
    head, _, names = realms.import_map('{"imports": {"node:vm": "data:,"}}').partition(",")
    assert head == "data:application/json"
    assert json.loads(unquote(names)) == {
        "imports": {
            "node:vm": "data:,",
            "pml-5ecret:vm": "node:vm",
            "pml-5ecret:module": "node:module",
        }
    }
    assert len(json.loads(unquote(realms.import_map("{}").partition(",")[2]))["imports"]) == 2


def test_realms_that_were_refused_are_used_no_more() -> None:
    realms = Realms("5ecret")
    assert realms.usable
    realms.refuse("walk: leaked")
    assert (realms.usable, realms.refused) == (False, "walk: leaked")
