"""Calls of bound tools: made if they match what the approver was shown, else parked."""

from dataclasses import dataclass, field

import pytest
from pydantic import JsonValue

from pml_common.contracts.decision import ArgumentRule, PolicyRule
from pml_common.contracts.grant import GrantedNode
from pml_common.contracts.structure import (
    Argument,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
)
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from services.executor.tests.support.builders import agreed, bound, capability, make_command
from services.executor.tests.support.harness import finish, make_dependencies, parked
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools, answering

FILES: JsonValue = {"files": [{"path": "/a"}, {"path": "/b"}], "first": "/a"}


def shown(*, repeats: bool = False, **arguments: Argument) -> GrantedNode:
    return GrantedNode(tool="fs:write", arguments=arguments, repeats=repeats)


def result(*path: str | int | None, node_id: str | None = "n1") -> ReferenceArgument:
    return ReferenceArgument(expression="n1.…", node_id=node_id, path=path)


SAFE = LiteralArgument(value="/safe")
LITERAL = shown(path=SAFE)
PARAMETER = shown(path=ParameterArgument(parameter_name="path", path=("path",)))
DEFAULTED = shown(
    path=ParameterArgument(parameter_name="to", path=("to",), default=("/default",)),
)
MEMBER = shown(path=result("first"))
ELEMENT = shown(path=result("files", None, "path"), repeats=True)
COMPUTED = shown(path=ReferenceArgument(expression="JSON.parse(a).path", node_id="n1"))
NESTED = shown(to=ObjectArgument(fields={"path": SAFE, "mode": LiteralArgument(value=1)}))
SPREAD = GrantedNode(
    tool="fs:write",
    arguments={
        "path": SAFE,
        "...options": ReferenceArgument(expression="options", keys=("mode",)),
    },
    repeats=False,
)
NO_NODE = "this call of fs:write was not seen when the program was analysed"


@dataclass(frozen=True)
class Case:
    """A program with one write at `at`, after a read whose result is `FILES`."""

    node: GrantedNode
    args: JsonObject
    why: str | None = None
    at: str | None = "n2"
    grant: dict[str, object] = field(default_factory=dict[str, object])


UNDER = PolicyRule(
    pattern="fs:write", arguments=(ArgumentRule(name="path", under="/evil"),), verdict="allow"
)
CASES = {
    "a literal": Case(LITERAL, {"path": "/safe"}),
    "another literal": Case(LITERAL, {"path": "/evil"}, "path was to be another value"),
    "another type": Case(NESTED, {"to": {"path": "/safe", "mode": True}}, "to was to be built"),
    "an object": Case(NESTED, {"to": {"mode": 1.0, "path": "/safe"}}),
    "a surplus key": Case(LITERAL, {"path": "/safe", "mode": 1}, "mode was not to be given"),
    "a key inside": Case(NESTED, {"to": {"path": "/safe", "mode": 1, "x": 0}}, "to was to be"),
    "a missing key": Case(LITERAL, {}, "path was to be another value"),
    "a parameter": Case(PARAMETER, {"path": "/mine"}),
    "another parameter": Case(PARAMETER, {"path": "/evil"}, "path was to be the caller's"),
    "a default": Case(DEFAULTED, {"path": "/default"}),
    "another default": Case(DEFAULTED, {"path": "/evil"}, "path was to be the caller's"),
    "a result": Case(MEMBER, {"path": "/a"}),
    "another result": Case(MEMBER, {"path": "/b"}, "path was to come from a result of n1"),
    "an element": Case(ELEMENT, {"path": "/b"}),
    "no element": Case(ELEMENT, {"path": "/c"}, "path was to come from a result of n1"),
    "a result of nobody": Case(
        shown(path=result("first", node_id="n7")), {"path": "/a"}, "from a result of n7"
    ),
    "computed": Case(COMPUTED, {"path": "/anything"}),
    "computed and surplus": Case(COMPUTED, {"path": "/a", "mode": 1}, "mode was not to be given"),
    "computed under a policy that asks": Case(
        COMPUTED, {"path": "/a"}, "path is computed", grant={"computed_parks": True}
    ),
    "a spread": Case(SPREAD, {"path": "/safe", "mode": 7}),
    "a key that no spread sets": Case(SPREAD, {"path": "/safe", "x": 1}, "x was not to be given"),
    "another node": Case(LITERAL, {"path": "/safe"}, NO_NODE, at="n3"),
    "a node of another tool": Case(LITERAL, {"path": "/safe"}, NO_NODE, at="n4"),
    "no node": Case(LITERAL, {"path": "/safe"}, NO_NODE, at=None),
    "a way that does not exist": Case(LITERAL, {"path": "/safe"}, NO_NODE, at="n2/n2"),
    "standing consent": Case(LITERAL, {"path": "/evil/x"}, at=None, grant={"standing": (UNDER,)}),
    "no standing consent": Case(LITERAL, {"path": "/x"}, NO_NODE, None, {"standing": (UNDER,)}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_call_is_made_if_it_is_what_was_shown_and_else_asked_about(case: Case) -> None:
    async def program(api: ProgramApi, args: JsonObject) -> JsonValue:
        await api.call("n1", "fs:read")
        return await api.call(case.at, "fs:write", case.args)

    bus, tools = MemoryBus(), MemoryTools({"fs:read": answering(FILES)})
    deps = make_dependencies(bus, MemoryPool({"program": program}), tools)
    nodes = {"n2": case.node, "n4": GrantedNode(tool="fs:create", arguments={"path": SAFE})}
    command = bound(make_command("program", {"path": "/mine"}), nodes)
    grant = command.grant.model_copy(update=case.grant)
    command = command.model_copy(update={"grant": grant})

    if case.why is not None:
        waits = await parked(command, deps)
        assert case.why in waits.wanted.why
        assert waits.wanted.args == case.args
        assert (waits.wanted.node_id, waits.wanted.occurrence) == (case.at or "dyn:fs:write", 0)
        assert waits.beside == ()
        assert tools.made == {"fs:read": 1}
        command = agreed(waits, command)

    fact = await finish(command, deps)
    assert fact.result == case.args
    assert tools.made == {"fs:read": 1, "fs:write": 1}


async def test_a_node_outside_loops_is_granted_one_occurrence() -> None:
    async def twice(api: ProgramApi, args: JsonObject) -> JsonValue:
        return [await api.call("n2", "fs:write", {"path": "/safe"}) for _ in range(2)]

    tools, command = MemoryTools(), make_command("twice")
    deps = make_dependencies(MemoryBus(), MemoryPool({"twice": twice}), tools)
    again = shown(path=SAFE, repeats=True)
    assert (await finish(bound(command, {"n2": again}), deps)).success

    once = bound(make_command("twice"), {"n2": LITERAL})
    waits = await parked(once, deps)
    assert waits.wanted.occurrence == 1
    assert waits.wanted.why == "this call of fs:write was to be made once, and this is another one"
    assert tools.made == {"fs:write": 3}
    assert (await finish(agreed(waits, once), deps)).success
    assert tools.made == {"fs:write": 4}


async def test_a_call_that_did_not_fit_uses_the_one_occurrence_up() -> None:
    async def evil_first(api: ProgramApi, args: JsonObject) -> JsonValue:
        paths = "/evil", "/safe"
        return [await api.call("n2", "fs:write", {"path": path}) for path in paths]

    tools, command = MemoryTools(), bound(make_command("program"), {"n2": LITERAL})
    deps = make_dependencies(MemoryBus(), MemoryPool({"program": evil_first}), tools)
    first = await parked(command, deps)
    command = agreed(first, command)
    second = await parked(command, deps)
    assert (first.wanted.args, second.wanted.args) == ({"path": "/evil"}, {"path": "/safe"})
    assert tools.made == {"fs:write": 1}


async def test_a_result_counts_only_once_it_is_there_and_only_of_a_call_that_succeeded() -> None:
    async def program(api: ProgramApi, args: JsonObject) -> JsonValue:
        await api.call("n2", "fs:write", {"path": "/a"})
        return await api.call("n1", "fs:read")

    tools = MemoryTools({"fs:read": answering(FILES)})
    deps = make_dependencies(MemoryBus(), MemoryPool({"program": program}), tools)
    waits = await parked(bound(make_command("program"), {"n2": MEMBER}), deps)
    assert waits.wanted.why.endswith("path was to come from a result of n1")
    assert tools.asked == []


async def test_parameters_of_capabilities_are_followed_through_their_calls() -> None:
    async def program(api: ProgramApi, args: JsonObject) -> JsonValue:
        return await api.capability("n5", 0, {"to": args["path"]})

    async def writing(api: ProgramApi, args: JsonObject) -> JsonValue:
        mine = await api.call("n1", "fs:write", {"path": args["to"]})
        return [mine, await api.call("n1", "fs:write", {"path": "/evil"})]

    save = capability("fs:save", "writing")
    to = ParameterArgument(parameter_name="to", path=("to",))
    path = ParameterArgument(parameter_name="path", path=("path",))
    nodes = {
        "n5": GrantedNode(capability_id=save.capability_id, arguments={"to": path}),
        f"{save.capability_id}/n1": shown(path=to, repeats=True),
    }
    tools = MemoryTools()
    pool = MemoryPool({"program": program, "writing": writing})
    deps = make_dependencies(MemoryBus(), pool, tools)
    command = bound(make_command("program", {"path": "/mine"}, injected=[save]), nodes)
    waits = await parked(command, deps)
    assert (waits.wanted.node_id, waits.wanted.args) == ("n5/n1", {"path": "/evil"})
    assert [query.args for query in tools.asked] == [{"path": "/mine"}]
    assert (await finish(agreed(waits, command), deps)).success


async def test_a_dry_run_mocks_what_does_not_fit_and_makes_no_real_call_of_it() -> None:
    async def program(api: ProgramApi, args: JsonObject) -> JsonValue:
        return await api.call("n2", "fs:write", {"path": "/evil"})

    tools, command = MemoryTools(), bound(make_command("program"), {"n2": LITERAL})
    deps = make_dependencies(MemoryBus(), MemoryPool({"program": program}), tools)
    grant = command.grant.model_copy(update={"dry_run": True})
    refused = await finish(command.model_copy(update={"grant": grant}), deps)
    assert refused.error is not None
    assert (refused.error.kind, refused.error.node_id) == ("denied", "n2")
    assert "path was to be another value" in refused.error.message

    again = make_command("program")
    grant = again.grant.model_copy(
        update={"dry_run": True, "bound": command.grant.bound, "nodes": command.grant.nodes}
    )
    mocked = again.model_copy(update={"grant": grant, "mocks": {"fs:write": ("done",)}})
    assert (await finish(mocked, deps)).result == "done"
    assert tools.asked == []
