"""The tools of a scope, and their index."""

from pml_analysis.decision.toolbox import Toolbox, Tools
from pml_common.contracts.tool import QuarantinedTool
from services.analyzer.tests.support.programs import tool

READ, WRITE, STATUS = tool("fs:read"), tool("fs:write"), tool("git:status")


def test_tools_are_listed_by_server_and_found_by_name() -> None:
    tools = Tools([READ, STATUS, WRITE])
    assert list(tools) == [READ, WRITE, STATUS]
    assert tools.by_server == {"fs": {"read": READ, "write": WRITE}, "git": {"status": STATUS}}


def test_tools_are_a_sequence() -> None:
    tools = Tools([READ, STATUS, WRITE])
    assert len(tools) == 3
    assert tools[1] == WRITE
    assert list(tools[1:]) == [WRITE, STATUS]


def test_of_two_tools_with_one_name_the_last_holds() -> None:
    other = tool("fs:read", "path")
    assert list(Tools([READ, other])) == [other]


def test_what_is_made_once_is_not_made_again() -> None:
    tools = Tools([READ])
    assert Tools.of(tools) is tools
    assert list(Tools.of([READ])) == [READ]


def test_the_hash_of_a_tool_is_that_of_its_definition_however_often_it_is_asked_for() -> None:
    tools = Tools([READ, WRITE])
    for tool_ in (READ, WRITE, READ):
        assert tools.hash_of(tool_) == tool_.definition_hash


def test_a_tool_in_quarantine_is_explained_by_what_changed_and_how_to_accept_it() -> None:
    held = QuarantinedTool(
        server="fs", name="write", changed=("description",), definition_hash="ab" * 32
    )
    for known in ([READ], []):
        explained = Toolbox(Tools(known, [held])).explain("fs", "write")
        assert "fs:write is quarantined: its server changed its definition (description)" in (
            explained
        )
        assert "`pml servers accept fs write`" in explained
