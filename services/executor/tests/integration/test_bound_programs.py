"""Real programs whose calls differ from what the approver was shown."""

from collections.abc import Callable

import pytest

from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.grant import GrantedNode
from pml_common.contracts.structure import Argument, LiteralArgument, ReferenceArgument
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.application import pending_calls
from pml_executor.application.run_dependencies import RunDependencies
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import (
    agreed,
    agreed_to_rest,
    bound,
    make_command,
    waiting,
)
from services.executor.tests.support.harness import finish, make_dependencies, parked
from services.executor.tests.support.memory_tools import MemoryTools, answering
from services.executor.tests.support.realms import skip_in_realms

pytestmark = pytest.mark.integration

WRITE = '__pml.at("n1", mcp.fs.write)'
SHOWN: dict[str, Argument] = {"path": LiteralArgument(value="/safe")}
LITERAL = GrantedNode(tool="fs:write", arguments=SHOWN, repeats=False)
REPEATED = GrantedNode(tool="fs:write", arguments=SHOWN, repeats=True)
ELEMENT = GrantedNode(
    tool="fs:write",
    arguments={
        "path": ReferenceArgument(expression="file.path", node_id="n0", path=(None, "path"))
    },
)
SAFE = '{ path: "/safe" }'
EVIL = '{ path: "/evil" }'


@pytest.fixture
def ready(
    deno_pool: SandboxPool,
) -> Callable[..., tuple[RunWorkflow, RunDependencies]]:
    """Build a command under which writes are bound at n1, and its dependencies."""

    def make(
        code: str, tools: MemoryTools, node: GrantedNode = LITERAL
    ) -> tuple[RunWorkflow, RunDependencies]:
        deps = make_dependencies(MemoryBus(), deno_pool, tools)
        return bound(make_command(code, timeout_s=60.0), {"n1": node}), deps

    return make


Ready = Callable[..., tuple[RunWorkflow, RunDependencies]]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the program's pause longer than a busy machine may delay it."""
    monkeypatch.setattr(pending_calls, "_PAUSE_S", 60.0)
    monkeypatch.setattr(pending_calls, "_MAX_PAUSE_S", 60.0)


UNFIT = {
    "other arguments": (f"return await {WRITE}({EVIL});", "n1", {"path": "/evil"}),
    "a surplus key": (
        f'return await {WRITE}({{ path: "/safe", mode: 1 }});',
        "n1",
        {"path": "/safe", "mode": 1},
    ),
    "changed on the way": (
        f"const o = {SAFE}; [Object.assign][0](o, {EVIL}); return await {WRITE}(o);",
        "n1",
        {"path": "/evil"},
    ),
    "another occurrence": (
        f"await {WRITE}({SAFE}); return await {WRITE}({SAFE});",
        "n1",
        {"path": "/safe"},
    ),
    "another node": (
        f'return await __pml.at("n2", mcp.fs.write)({SAFE});',
        "n2",
        {"path": "/safe"},
    ),
    "another tool at the node": (
        'return await __pml.at("n1", mcp.fs.remove)({ path: "/safe" });',
        "n1",
        {"path": "/safe"},
    ),
    "found in a list": (
        f"return await [mcp][0].fs.write({SAFE});",
        "dyn:fs:write",
        {"path": "/safe"},
    ),
    "by call": (
        f"return await mcp.fs.write.call(null, {EVIL});",
        "dyn:fs:write",
        {"path": "/evil"},
    ),
    "by its name": (
        f'return await mcp.call("fs:write", {SAFE});',
        "dyn:fs:write",
        {"path": "/safe"},
    ),
}


@pytest.mark.parametrize(("code", "node", "args"), UNFIT.values(), ids=UNFIT)
async def test_what_was_not_shown_is_asked_about_with_its_real_arguments(
    ready: Ready, code: str, node: str, args: dict[str, object]
) -> None:
    tools = MemoryTools()
    command, deps = ready(code, tools)
    fact = await parked(command, deps)
    assert (fact.wanted.node_id, fact.wanted.args, fact.beside) == (node, args, ())
    before = [query.args for query in tools.asked]
    assert before == [{"path": "/safe"}] * fact.wanted.occurrence
    assert (await finish(agreed(fact, command), deps)).success
    assert [query.args for query in tools.asked] == [*before, args]


FIT = {
    "a literal": (f"return await {WRITE}({SAFE});", LITERAL),
    "each time": (f"for (let i = 0; i < 3; i++) await {WRITE}({SAFE});", REPEATED),
    "undefined is nothing": (
        f'return await {WRITE}({{ path: "/safe", mode: undefined }});',
        LITERAL,
    ),
    "elements of a result": (
        f"""const files = await __pml.at("n0", mcp.fs.list)({{}});
        return await Promise.all(files.map(({{ path }}) => {WRITE}({{ path }})));""",
        ELEMENT,
    ),
}


@pytest.mark.parametrize(("code", "node"), FIT.values(), ids=FIT)
async def test_what_was_shown_is_made_unasked(
    ready: Ready,
    code: str,
    node: GrantedNode,
) -> None:
    tools = MemoryTools({"fs:list": answering([{"path": f"/{n}"} for n in range(5)])})
    command, deps = ready(code, tools, node)
    granted = {**command.grant.tools, "fs:list": "hash"}
    grant = command.grant.model_copy(update={"tools": granted})
    fact = await finish(command.model_copy(update={"grant": grant}), deps)
    assert fact.success, fact.error
    assert tools.made["fs:write"] == {"each time": 3, "elements of a result": 5}.get(
        next(name for name, case in FIT.items() if case == (code, node)), 1
    )


MAPS = {
    "seen": f"""const all = [...Array(200).keys()].map((n) => {WRITE}({{ n }}));
        return (await Promise.all(all)).length;""",
    "handed over": """const all = [...Array(200).keys()].map((n) => ({ n }));
        return (await Promise.all(all.map(mcp.fs.write))).length;""",
}


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("code", MAPS.values(), ids=MAPS)
async def test_two_hundred_calls_are_one_question_and_each_is_made_once(
    ready: Ready, code: str
) -> None:
    tools = MemoryTools()
    command, deps = ready(code, tools, REPEATED)
    fact = await parked(command, deps)
    assert [call.args for call in waiting(fact)] == [{"n": n} for n in range(200)]
    assert tools.asked == []

    first = agreed(fact, command, fact.wanted)
    second = await parked(first, deps)
    assert waiting(second) == waiting(fact)[1:]
    assert tools.made == {"fs:write": 1}

    assert (await finish(agreed(second, first), deps)).result == 200
    assert tools.made == {"fs:write": 200}


async def test_two_hundred_calls_are_allowed_by_one_answer(ready: Ready) -> None:
    tools = MemoryTools()
    command, deps = ready(MAPS["handed over"], tools)
    fact = await parked(command, deps)
    assert (await finish(agreed_to_rest(fact, command), deps)).result == 200
    assert tools.made == {"fs:write": 200}


BUSY = {
    "silent": f"{WRITE}({EVIL}); for (;;);",
    "thrown past": f"{WRITE}({EVIL}); throw new Error();",
    "rejected past": f"{WRITE}({EVIL}); Promise.reject(1); await new Promise(() => {{}});",
    "raced": f"return await Promise.race([{WRITE}({EVIL}), Promise.resolve(1)]);",
    "timed": f"setTimeout(() => {{ for (;;); }}, 0); return await {WRITE}({EVIL});",
    "beside endless promises": f"""{WRITE}({EVIL});
        for (;;) await null;""",
}


@pytest.mark.parametrize("code", BUSY.values(), ids=BUSY)
async def test_a_program_that_does_not_wait_for_its_call_parks_all_the_same(
    ready: Ready, code: str, deno_pool: SandboxPool
) -> None:
    if code.endswith(("for (;;);", "for (;;) await null;")):
        skip_in_realms(deno_pool)
    tools = MemoryTools()
    command, deps = ready(code, tools)
    fact = await parked(command.model_copy(update={"timeout_s": 600.0}), deps)
    assert [call.args for call in waiting(fact)] == [{"path": "/evil"}]
    assert tools.asked == []


@pytest.mark.parametrize(
    "end", ["for (;;);", "return await call;", "return await Promise.race([call, 1]);"]
)
async def test_a_call_that_the_gateway_asks_about_parks_whatever_the_program_does(
    ready: Ready, end: str, deno_pool: SandboxPool
) -> None:
    if end == "for (;;);":
        skip_in_realms(deno_pool)

    class Asking(MemoryTools):
        asks = True

        async def call(self, query: CallTool) -> ToolOutcome:
            if self.asks:
                return ToolOutcome(status="ask", message="the policy has changed")
            return await super().call(query)

    tools = Asking()
    command, deps = ready(f"const call = {WRITE}({SAFE}); {end}", tools)
    command = command.model_copy(update={"timeout_s": 600.0})
    fact = await parked(command, deps)
    assert (fact.wanted.node_id, fact.wanted.why) == ("n1", "the policy has changed")
    assert fact.task_results == ()
    if end != "for (;;);":
        tools.asks = False
        assert (await finish(agreed(fact, command), deps)).success
        assert tools.made == {"fs:write": 1}


@pytest.mark.usefixtures("patient")
async def test_calls_under_way_beside_one_that_waits_end_and_are_kept(ready: Ready) -> None:
    code = f"""
        const beside = [mcp.api.a({{ n: 1 }}), {WRITE}({EVIL}), mcp.api.b({{ n: 2 }})];
        return await Promise.all(beside);"""
    tools = MemoryTools()
    command, deps = ready(code, tools)
    fact = await parked(command, deps)
    assert sorted((each.tool, each.success) for each in fact.task_results) == [
        ("api:a", True),
        ("api:b", True),
    ]
    end = await finish(agreed(fact, command), deps)
    assert end.result == [{"n": 1}, {"path": "/evil"}, {"n": 2}]
    assert tools.made == {"api:a": 1, "api:b": 1, "fs:write": 1}
