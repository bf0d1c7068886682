"""Tools for analyses of programs, and short forms of their outcomes."""

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_common.contracts.decision import Policy
from pml_common.contracts.structure import (
    CapabilityNode,
    DecisionNode,
    ForkNode,
    JoinNode,
    LoopNode,
    Node,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition


def schema(*required: str, **optional: str) -> JsonObject:
    """Build the schema of an object of text fields; optional ones with their type."""
    names = {**dict.fromkeys(required, "string"), **optional}
    properties: JsonObject = {name: {"type": kind} for name, kind in names.items()}
    return {"type": "object", "properties": properties, "required": list(required)}


def tool(
    tool_id: str,
    *required: str,
    gives: JsonObject | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    description: str = "",
    **optional: str,
) -> ToolDefinition:
    """Build a tool with these arguments."""
    server, _, name = tool_id.partition(":")
    return ToolDefinition(
        server=server,
        name=name,
        description=description,
        input_schema=schema(*required, **optional),
        output_schema=gives,
        annotations=ToolAnnotations(read_only=read_only, destructive=destructive),
    )


TOOLS = (
    tool("fs:stat", "path", gives=schema(exists="boolean", size="integer"), read_only=True),
    tool("fs:list", "path", read_only=True),
    tool(
        "fs:read",
        "path",
        gives=schema("content"),
        read_only=True,
        description="Reads a file. Very fast.",
        limit="number",
    ),
    tool("fs:create", "path"),
    tool("fs:write", "path", "content", destructive=True, description="Writes a file"),
    tool("json:parse", "json", gives=schema("url", "body"), read_only=True),
    tool("http:post", "url", "body", headers="object"),
    tool("git:status", read_only=True),
    tool("server-x:tool-y", "a"),
)

SOURCES_EXAMPLE = """\
const file = await mcp.fs.stat({ path });
if (file.exists) {
  const content = await mcp.fs.read({ path });
  return content;
} else {
  await mcp.fs.create({ path });
  await mcp.fs.write({ path, content: "" });
}
"""


def analysed(code: str, policy: Policy | None = None) -> Analysis:
    """Return the analysis of a program that must not be rejected."""
    outcome = analyze(code, tools=TOOLS, policy=policy or Policy())
    assert isinstance(outcome, Analysis), outcome
    return outcome


def rejected(code: str) -> Rejection:
    """Return the rejection of a program that must be rejected."""
    outcome = analyze(code, tools=TOOLS, policy=Policy())
    assert isinstance(outcome, Rejection), outcome
    return outcome


def complaints(code: str) -> list[str]:
    """Return `line:column message` of every diagnostic of a rejected program."""
    return [f"{told.line}:{told.column} {told.message}" for told in rejected(code).diagnostics]


def nodes(analysis: Analysis) -> str:
    """Return `n1 fs:stat, d1 file.exists, l1 for-of files, f1 all`, in order, without joins."""
    return ", ".join(
        f"{node.id} {_shown(node)}"
        for node in analysis.structure.nodes
        if not isinstance(node, JoinNode)
    )


def _shown(node: Node) -> str:
    match node:
        case TaskNode():
            return node.tool
        case CapabilityNode():
            return f"cap:{node.name}"
        case DecisionNode():
            return node.condition
        case LoopNode():
            return f"{node.kind} {node.over}"
        case ForkNode():
            return f"{node.kind} {node.over}" if node.over else node.kind
        case JoinNode():
            return "join"


def flow(analysis: Analysis) -> str:
    """Return `n1>d1 d1>n2:true l1>>n3`: sequence, conditional and loop edges, in order."""
    return " ".join(
        f"{edge.from_}{'>>' if edge.type == 'loop_body' else '>'}{edge.to}"
        f"{f':{edge.outcome}' if edge.outcome else ''}"
        for edge in analysis.structure.edges
        if edge.type != "provides"
    )


def provided(analysis: Analysis) -> str:
    """Return `n1>n2:strict`: provides edges, in order."""
    return " ".join(
        f"{edge.from_}>{edge.to}{f':{edge.coverage}' if edge.coverage else ''}"
        for edge in analysis.structure.edges
        if edge.type == "provides"
    )


def task(analysis: Analysis, node_id: str) -> TaskNode:
    """Return one task."""
    (found,) = [node for node in analysis.structure.nodes if node.id == node_id]
    assert isinstance(found, TaskNode)
    return found


def arguments(analysis: Analysis, node_id: str = "n1") -> JsonObject:
    """Return the arguments of one task, as JSON."""
    dumped = task(analysis, node_id).model_dump(mode="json")
    return dumped["arguments"]


def warnings(code: str) -> list[str]:
    """Return `line:column message` of every warning about a program that may run."""
    told = analysed(code).diagnostics
    assert all(one.severity == "warning" for one in told)
    return [f"{one.line}:{one.column} {one.message}" for one in told]


def submitted(code: str) -> Analysis:
    """Return the analysis of a program that a client sends, which must not be rejected."""
    outcome = analyze(code, tools=TOOLS, policy=Policy(), submitted=True)
    assert isinstance(outcome, Analysis), outcome
    return outcome


def submitted_complaints(code: str) -> list[str]:
    """Return `line:column message` of every diagnostic of a program that a client sends, which must
    be rejected."""
    outcome = analyze(code, tools=TOOLS, policy=Policy(), submitted=True)
    assert isinstance(outcome, Rejection), outcome
    return [f"{told.line}:{told.column} {told.message}" for told in outcome.diagnostics]
