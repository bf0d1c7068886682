"""Real programs that wait for approval, whose executor is killed at every append and every call."""

import pytest

from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.grant import GrantedNode
from pml_common.contracts.structure import LiteralArgument
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import agreed, bound, make_command, waiting
from services.executor.tests.support.fakes import crashing
from services.executor.tests.support.harness import deliver, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools

pytestmark = pytest.mark.integration

SAFE = GrantedNode(tool="fs:write", arguments={"path": LiteralArgument(value="/safe")})
PROGRAMS = {
    "side by side": (
        """const late = new Promise((done) => setTimeout(done, 5));
        const all = await Promise.all([
          __pml.at("n2", mcp.api.a)({ r: Math.random() }),
          __pml.at("n1", mcp.fs.write)({ path: "/evil", r: Math.random() }),
          __pml.at("n1", mcp.fs.write)({ path: "/safe" }),
          mcp.call("mail:send", { id: crypto.randomUUID() }),
        ]);
        await late;
        return [all.length, (await __pml.at("n3", mcp.api.b)({ all })) !== null];""",
        [4, True],
        {"api:a": 1, "api:b": 1, "fs:write": 2, "mail:send": 1},
    ),
}


@pytest.mark.parametrize(
    "after", [pytest.param(False, marks=pytest.mark.nightly), True], ids=["before", "after"]
)
@pytest.mark.parametrize("name", list(PROGRAMS))
async def test_a_program_asks_for_each_call_once_wherever_its_executors_die(
    deno_pool: SandboxPool,
    name: str,
    after: bool,
) -> None:
    """Crash each executor at its n-th effect, before and after the park, and have one take over."""
    code, result, made = PROGRAMS[name]
    for effects in range(1, 30):
        bus, tools, deaths = MemoryBus(), MemoryTools(), 0
        command = bound(make_command(code), {"n1": SAFE})
        asked = list[tuple[str, int]]()
        while True:
            mortal_bus, mortal_tools, _ = crashing(bus, tools, effects, after)
            try:
                mortal = make_dependencies(mortal_bus, deno_pool, mortal_tools)
                (fact,) = await deliver(command, mortal)
            except (RuntimeError, ExceptionGroup):
                deaths += 1
                (fact,) = await deliver(command, make_dependencies(bus, deno_pool, tools))
            if not isinstance(fact, WorkflowParked):
                break
            asked += [(call.node_id, call.occurrence) for call in waiting(fact)]
            assert len(set(asked)) == len(asked)
            command = agreed(fact, command)
        assert isinstance(fact, RunFinished)
        assert (fact.error, fact.result) == (None, result)
        assert tools.made == made
        assert len(fact.task_results) == sum(made.values())
        if not deaths:
            assert effects > 4
            return
    raise AssertionError("no executor lived long enough")
