"""Position of the call at which a real program waits for approval."""

import asyncio

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.executor import WorkflowParked
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import deliver, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools

pytestmark = pytest.mark.integration

PROGRAM = """\
const say = (name, text) => mcp.call(name, { text });
await «__pml.at("n1", »mcp.fs.read«)»({});
if (args.loud) await mcp.mail.shout({ text: "x" });
return await say("mail:send", "y".repeat(1000));
"""


@pytest.mark.parametrize(("loud", "line", "column"), [(True, 3, 31), (False, 1, 33)])
async def test_a_call_that_nobody_saw_is_told_with_its_place(
    deno_pool: SandboxPool,
    loud: bool,
    line: int,
    column: int,
) -> None:
    tools = MemoryTools()
    command = make_command(PROGRAM, {"loud": loud})
    async with asyncio.timeout(PATIENCE_S):
        (fact,) = await deliver(command, make_dependencies(MemoryBus(), deno_pool, tools))
    assert isinstance(fact, WorkflowParked)
    assert (fact.wanted.line, fact.wanted.column) == (line, column)
    assert fact.wanted.args == {"text": "x" if loud else "y" * 1000}
    assert tools.made == {"fs:read": 1}
