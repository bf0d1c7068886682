"""Names that no offered tool is meant by: methods that hosts have, and tools in quarantine."""

import pytest

from pml_analysis.analysis import Rejection, analyze
from pml_analysis.decision.toolbox import Tools
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import QuarantinedTool
from services.analyzer.tests.support.foreign_names import TOOLS, sent
from services.analyzer.tests.support.programs import nodes, tool

HELD = QuarantinedTool(
    server="fs", name="read_file", changed=("description",), definition_hash="ab" * 32
)


@pytest.mark.parametrize("method", ["list", "get", "execute", "has"])
def test_a_method_that_hosts_have_is_no_tool_of_a_server(method: str) -> None:
    tools = (*TOOLS, tool(f"mail:{method}"))
    for text in (f"tools.{method}('behave')", f"mcp.tools.{method}()", f"mcp.{method}({{}})"):
        outcome = analyze(f"return {text};", tools=tools, policy=Policy(), submitted=True)
        assert isinstance(outcome, Rejection), text
        (told,) = outcome.diagnostics
        assert f"write mcp.mail.{method}(…)" in told.message
    assert nodes(sent(f"return mcp.mail_{method}({{}});", tools)) == f"n1 mail:{method}"
    assert nodes(sent(f"return callTool('{method}', {{}});", tools)) == f"n1 mail:{method}"


@pytest.mark.parametrize(
    "text",
    [
        "mcp.fs.read_file({})",
        "tools.fs.read_file({})",
        "mcp.fs_read_file({})",
        'mcp.call("fs:read_file", {})',
        'callTool("fs:read_file", {})',
        "(mcp.fs.read_file as any)({})",
    ],
)
def test_a_tool_in_quarantine_is_replaced_by_no_other(text: str) -> None:
    tools = Tools([tool("fs:readFile")], [HELD])
    outcome = analyze(f"return {text};", tools=tools, policy=Policy(), submitted=True)
    assert isinstance(outcome, Rejection)
    assert "fs:read_file is quarantined" in outcome.diagnostics[0].message


def test_of_two_spellings_the_one_in_quarantine_is_not_recommended() -> None:
    for offered, told in (
        (tool("fs:readFile"), "write mcp.fs.readFile(…)"),
        (tool("fs:other"), "fs:read_file is quarantined"),
    ):
        tools = Tools([offered], [HELD])
        for text in ("mcp.fs.Re_adFile({})", "mcp.FS_RE_ADFILE({})"):
            outcome = analyze(f"return {text};", tools=tools, policy=Policy(), submitted=True)
            assert isinstance(outcome, Rejection)
            assert told in outcome.diagnostics[0].message, outcome.diagnostics[0].message


def test_a_hosts_name_alone_is_told_too() -> None:
    for text in ("return await tools.call(args.name, {});", "mcp.tools.call(args.name, {});"):
        outcome = sent(text)
        written = "mcp.tools" if text.startswith("mcp") else "tools"
        assert f"`{written}` is `mcp`" in outcome.notices[0]
        assert outcome.reads_catalog
    outcome = sent("const sum = mcp.Everything.GetSum; return sum({});")
    assert '`mcp.Everything.GetSum` is `mcp.everything["get-sum"]`' in outcome.notices[0]
