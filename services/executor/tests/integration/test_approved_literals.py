"""Calls are those that a person approved: no program changes the meaning of its literals."""

import pytest

from pml_common.contracts.executor import RunFinished
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import deliver, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools

pytestmark = pytest.mark.integration

APPROVED = {"path": "ok", "content": "x"}
CALL = 'return await __pml.at("n1", mcp.fs.write)({ path: "ok", content: "x" });'
EVIL = '{ path: "evil" }'
ATTACKS = {
    "an inherited toJSON": (
        f'Object.defineProperty(Object.prototype, "toJSON", {{ value() {{ return {EVIL}; }} }});'
    ),
    "a toJSON by assignment": (
        f"Object.assign(Object.prototype, {{ toJSON() {{ return {EVIL}; }} }});"
    ),
    "a toJSON by reflection": (
        f'Reflect.set(Object.getPrototypeOf({{}}), "toJSON", () => ({EVIL}));'
    ),
    "a toJSON of texts": (
        'Object.defineProperty(String.prototype, "toJSON", { value: () => "evil" });'
    ),
    "everything is a Map": """
        Object.defineProperty(Map, Symbol.hasInstance, { value: () => true });
        Object.defineProperty(Object.prototype, Symbol.iterator,
            { value: function* () { yield ["path", "evil"]; } });""",
    "a proxy trap for everybody": """
        Object.defineProperty(Object.prototype, "ownKeys", { value() {
            const old = this.get;
            this.get = (x, n) => ({ write: () => old(x, n).write({ path: "evil", content: "y" }) });
            return [];
        } });
        for (const k in mcp) {}""",
    "a function called otherwise": """
        Function.prototype.call = () => ({}); Function.prototype.apply = () => ({});
        Reflect.apply = () => ({});""",
    "another writer of texts": """
        JSON.stringify = () => '{"path":"evil"}'; Object.keys = () => [];
        Array.isArray = () => true; Array.prototype.includes = () => true;
        String.prototype.includes = () => true;""",
    "another prototype for all": (
        "Object.setPrototypeOf(Map, { [Symbol.hasInstance]: () => true });"
    ),
    "a setter on every list": """
        Object.defineProperty(Array.prototype, 0, { set() {}, get: () => "evil" });""",
    "a frozen world": "Object.freeze(Array.prototype); Object.freeze(Object.prototype);",
    "other constructors": """
        globalThis.Map = class {}; globalThis.Promise = class {}; globalThis.Error = class {};""",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_the_tool_gets_what_the_literal_says_or_nothing(
    attack: str,
    deno_pool: SandboxPool,
) -> None:
    tools = MemoryTools()
    deps = make_dependencies(MemoryBus(), deno_pool, tools)
    swallowed = f"try {{ {attack} }} catch {{}}"
    await deliver(make_command(f"{swallowed} {CALL}", tools=("fs:write",)), deps)
    assert [query.args for query in tools.asked] == [APPROVED]
    assert [query.node_id for query in tools.asked] == ["n1"]


async def test_a_tojson_of_the_literals_own_has_no_say(
    deno_pool: SandboxPool,
) -> None:
    tools = MemoryTools()
    deps = make_dependencies(MemoryBus(), deno_pool, tools)
    code = f'await __pml.at("n1", mcp.fs.write)({{ path: "ok", toJSON() {{ return {EVIL}; }} }});'
    (fact,) = await deliver(make_command(code, tools=("fs:write",)), deps)
    assert tools.asked == []
    assert isinstance(fact, RunFinished)
    assert fact.error is not None
    assert "fs:write: args is an object with a toJSON of its own" in fact.error.message
