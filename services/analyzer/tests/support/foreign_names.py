"""Tools whose names are written in several ways, and programs that a client sends."""

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_analysis.decision.capabilities import Library
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import ToolDefinition
from services.analyzer.tests.support.programs import tool

TOOLS = (
    tool("behave:echo"),
    tool("everything:get-sum", "a"),
    tool("file-system:read_file", "path"),
    tool("web:search", "query"),
    tool("web:find", "query"),
    tool("odd:then"),
    tool("a:b_c"),
    tool("a_b:c"),
    tool("git:status"),
    tool("hub:status"),
    tool("hub:list-all"),
    tool("hub:list_all"),
    tool("hub:in (all)"),
)
ECHO, SUM, READ = "mcp.behave.echo", 'mcp.everything["get-sum"]', 'mcp["file-system"].read_file'


def sent(
    code: str, tools: tuple[ToolDefinition, ...] = TOOLS, known: Library | None = None
) -> Analysis:
    """Return the analysis of a program that a client sends, which must not be rejected."""
    outcome = analyze(
        code, tools=tools, policy=Policy(), capabilities=known or Library(), submitted=True
    )
    assert isinstance(outcome, Analysis), outcome
    return outcome


def refused(code: str, *, submitted: bool = True) -> Rejection:
    """Return the rejection of a program that must be rejected."""
    outcome = analyze(code, tools=TOOLS, policy=Policy(), submitted=submitted)
    assert isinstance(outcome, Rejection), outcome
    return outcome


def complaint(code: str, *, submitted: bool = True) -> str:
    """Return `line:column message` of the one diagnostic of such a program."""
    (told,) = refused(code, submitted=submitted).diagnostics
    return f"{told.line}:{told.column} {told.message}"


def squeezed(code: str) -> str:
    """Return a text without what fills places up."""
    return "".join(code.split())
