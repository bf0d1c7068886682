"""Capabilities for programs to call, under the names that an analysis found; and programs."""

from uuid import UUID, uuid5

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.capability import InjectedCapability
from pml_executor.adapters.memory_tools import answering
from services.executor.tests.marked import instrumented

_NAMES = UUID("4bb1a6cb-7d9c-5d70-8f8f-5a1f0f4b7b52")


def capability(name: str, code: str, *called_as: str) -> InjectedCapability:
    """A capability, its «insertions» marked or not."""
    text, insertions = instrumented(code)
    return InjectedCapability(
        capability_id=uuid5(_NAMES, name),
        name=name,
        code_hash=uuid5(_NAMES, code).hex,
        called_as=called_as or (callable_name(name),),
        instrumented=text,
        insertions=insertions,
    )


READ = capability(
    "fs:read_json",
    """const { path } = args;
    console.log(path);
    const file = await «__pml.at("n1", »mcp.fs.stat«)»({ path });
    if («__pml.decide("d1", »file.exists«)») {
      return await «__pml.at("n2", »mcp.fs.read«)»({ path });
    }
    throw new RangeError("nothing at " + path);""",
)
REPORT = capability(
    "report:weekly",
    """const day = await «__pml.at("n1", »capabilities.fs_read_json«)»({ path: "/day" });
    return { day, got: args };""",
)
TOP = capability(
    "top:all", """return await «__pml.at("n1", »capabilities.report_weekly«)»({ from: "top" });"""
)
DEEPER = capability("top:deeper", """return await «__pml.at("n1", »capabilities.top_all«)»({});""")
ALL = (READ, REPORT, TOP, DEEPER)
"""Each calls the one before it."""

ANSWERS = {"fs:stat": answering({"exists": True}), "fs:read": answering("text")}


def calling(name: str, args: str = "{}") -> str:
    """A program that calls one capability at n1."""
    return f'return await __pml.at("n1", capabilities.{name})({args});'
