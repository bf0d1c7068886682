"""Changes of the configured servers while the pool runs, and lists of tools, with a real server."""

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_gateway.domain.servers.servers_file import ServerEntry
from services.gateway.tests.integration.mcp.harness import Listener, ServerHarness, connected

pytestmark = pytest.mark.integration


async def test_a_reload_changes_only_what_changed(harness: ServerHarness) -> None:
    told = Listener()
    kept, leaving = harness.stdio(), harness.stdio("--legacy")
    read = harness.stdio().model_copy(update={"include_tools": ("ec*", "typo")})
    async with connected({"kept": kept, "leaving": leaving}, on_tools=told) as pool:
        since = pool.status()["kept"].since
        entries = [ServerEntry("kept", "kept", kept), ServerEntry("added", "Added", read)]
        found = await pool.apply(entries)
        assert (found.added, found.removed, found.unchanged) == (
            ("added",),
            ("leaving",),
            ("kept",),
        )
        await eventually(lambda: pool.status()["added"].state == "ready")
        assert pool.status()["kept"].since == since
        assert ("leaving", set[str]()) in told.listings
        refused = await pool.call("leaving:echo", {"text": "a"}, PATIENCE_S)
        assert "no MCP server 'leaving' is configured" in str(refused.message)

        (added,) = (pool.status()["added"],)
        assert (added.title, added.tools) == ("Added", 1)
        assert added.excluded > 1
        assert (added.transport, added.needs_login) == ("stdio", False)
        assert "tools" in added.declares
        assert added.protocol == "2026-07-28"
        assert "its entry's lists of tools name 'typo', which no tool matches" in added.warnings
        assert (await pool.call("added:echo", {"text": "a"}, PATIENCE_S)).status == "ok"
        left_out = await pool.call("added:count", {"key": "k"}, PATIENCE_S)
        assert left_out.status == "refused"
        assert harness.lines() == []

        bare = read.model_copy(update={"prefix": False})
        changed = await pool.apply([ServerEntry("kept", "kept", bare), *entries[1:]])
        assert (changed.changed, changed.unchanged) == (("kept",), ("added",))
        await eventually(lambda: pool.status()["kept"].excluded > 1)
        assert [pool.status()[name].prefixed for name in ("kept", "added")] == [False, True]
        assert [pool.offers()[name].prefixed for name in ("kept", "added")] == [False, True]
        await eventually(lambda: told.listings[-1] == ("kept", {"echo"}))
