"""Rules of realms: which runs have one, and what their Worker's modules are called."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest

from pml_common.contracts.grant import GrantedCall, GrantedRest
from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.worker_code import WorkerTexts
from pml_executor.domain.pool import process_owner
from pml_executor.domain.realms import HiddenModules, Realms, suits_realm
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
    modules = HiddenModules("5ecret")
    code = 'import * as vm from "node:vm"; import { x } from "node:module";'
    hidden = 'import * as vm from "pml-5ecret:vm"; import { x } from "pml-5ecret:module";'
    assert modules.hide(code) == hidden
    head, _, names = modules.import_map('{"imports": {"node:vm": "data:,"}}').partition(",")
    assert head == "data:application/json"
    assert json.loads(unquote(names)) == {
        "imports": {"node:vm": "data:,"},
        "scopes": {"blob:null/": {"pml-5ecret:vm": "node:vm", "pml-5ecret:module": "node:module"}},
    }


def test_every_process_has_its_own_names_of_them() -> None:
    argv = ("deno", "run", "--import-map=/runtime/imports.json", "/runtime/host.js")
    command = DenoCommand(argv, 1000, 64, realms=Realms())
    first, second = command.hidden_modules(), command.hidden_modules()
    assert first is not None
    assert second is not None
    assert first.secret != second.secret
    maps = [command.argv_with(one)[2] for one in (first, second)]
    assert first.secret in maps[0]
    assert second.secret in maps[1]
    assert maps[0].startswith("--import-map=data:application/json,")
    texts = WorkerTexts(realm='import * as vm from "node:vm";')
    assert command.hello("s", texts, first).realm == f'import * as vm from "pml-{first.secret}:vm";'
    without = replace(command, realms=None)
    assert without.hidden_modules() is None
    assert without.argv_with(None) == argv


def test_realms_that_were_refused_are_used_no_more() -> None:
    realms = Realms()
    assert realms.usable
    realms.refuse("walk: leaked")
    assert (realms.usable, realms.refused) == (False, "walk: leaked")
