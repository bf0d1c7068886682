"""The official conformance suite of MCP against the whole stack, in front of a server that offers
what its scenarios ask for."""

from pathlib import Path

import pytest

from tests.conformance.suite import REVISIONS, gaps_of, run_suite
from tests.e2e.harness import StackHarness

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_the_suite_requires_holds_but_for_known_gaps(
    conforming: StackHarness, revision: str, tmp_path: Path
) -> None:
    gaps = gaps_of(revision)
    report = await run_suite(f"{conforming.stack.url}/mcp", revision, tmp_path)
    assert report.unexpected(gaps) == []
    assert report.stale(gaps) == []
