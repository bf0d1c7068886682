"""The real MCP servers of `make servers`: pinned, of every transport, and how they are reported."""

from pathlib import Path

from pml_common.contracts.server_names import safe_name
from tests.servers.known import KNOWN, Programs
from tests.servers.report import Outcome, page_of, table_of

PROGRAMS = Programs("deno", "uv", Path("/cache"))


def test_there_are_sixteen_servers_and_more_over_every_transport() -> None:
    assert len({one.package for one in KNOWN}) >= 16
    assert {one.transport for one in KNOWN} == {"stdio", "http", "sse"}
    assert len({safe_name(one.title) for one in KNOWN}) == len(KNOWN)
    assert all(one.release[0].isdigit() for one in KNOWN)


def test_what_is_fetched_is_what_is_started_and_nothing_is_fetched_then() -> None:
    for one in KNOWN:
        fetched = " ".join(one.fetch(PROGRAMS))
        started = one.start(PROGRAMS, Path("/f"), 4242)
        assert one.package in fetched
        assert one.release in fetched
        assert ("--cached-only" if one.registry == "npm" else "--offline") in started
        assert not [word for word in started if "{" in word]
        assert one.environment(PROGRAMS, Path("/f"), 4242)["HTTPS_PROXY"] == "http://127.0.0.1:9"


def test_a_server_that_failed_is_told_with_its_reason() -> None:
    good = Outcome(
        "A", "a 1", "stdio", "2025-11-25", 1.25, 3, ("prompts", "tools"), "success", True
    )
    bad = Outcome("B", "b 2", "sse", remarks=("no answer",))
    table = table_of([good, bad]).splitlines()
    assert table[1].split() == [
        "A",
        "a",
        "1",
        "stdio",
        "2025-11-25",
        "1.2",
        "3",
        "success",
        "prompts",
    ]
    assert table[2].split() == ["B", "b", "2", "sse", "-", "failed"]
    assert table[3].strip() == "no answer"
    page = page_of([good, bad])
    assert "1 of 2 connected and listed (1 stdio, 0 http, 0 sse), 3 tools" in page
    assert "- B: no answer" in page
