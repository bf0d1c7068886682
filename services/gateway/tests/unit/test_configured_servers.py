"""The servers of a file: faults of entries, and what a reload changes. No server is started."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.tool import ToolDefinition
from pml_gateway.adapters.mcp_client.configured import configured_servers
from pml_gateway.adapters.mcp_client.server_pool import ServerPool
from pml_gateway.adapters.mcp_client.withdrawals import Withdrawals
from pml_gateway.adapters.servers_file import places_of
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.ports import ConfiguredServers, Reloaded


@dataclass
class Told:
    """Listings that were passed on; the first `failures` fail."""

    failures: int = 0
    listings: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    async def __call__(self, server: str, tools: tuple[ToolDefinition, ...]) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("the bus is away")
        self.listings.append((server, len(tools)))


def _write(file: Path, **servers: object) -> None:
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


@asynccontextmanager
async def _of(
    file: Path | None, told: Told | None = None
) -> AsyncGenerator[tuple[ServerPool, ConfiguredServers]]:
    async with configured_servers(file, {}, told or Told()) as both:
        yield both


async def test_an_entry_with_a_fault_is_shown_and_stops_no_other(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    _write(file, **{"My fs": {"command": "x"}, "Web 2": {"url": "x"}, "off": {"disabled": True}})
    async with _of(file) as (pool, _):
        status = pool.status()
        assert list(status) == ["web-2", "my-fs"]
        assert (status["my-fs"].title, status["my-fs"].state) == ("My fs", "connecting")
        faulty = status["web-2"]
        assert (faulty.title, faulty.state) == ("Web 2", "failed")
        assert "mcpServers.Web 2.url" in str(faulty.error)
        refused = await pool.call("web-2:search", {}, 1.0)
        assert "its entry is faulty: mcpServers.Web 2.url" in str(refused.message)
        unknown = await pool.call("off:search", {}, 1.0)
        assert "no MCP server 'off' is configured" in str(unknown.message)
        await pool.reach("web-2", 1.0)


async def test_a_reload_tells_how_the_servers_differ(tmp_path: Path) -> None:
    file, told = tmp_path / "mcp.json", Told()
    _write(file, same={"command": "s"}, old={"command": "o"}, turned={"command": "1"})
    async with _of(file, told) as (pool, configured):
        same = {"command": "s"}
        _write(file, new={"command": "n"}, same=same, turned={"command": "2"}, bad={})
        found = await configured.reload()
        assert (found.added, found.removed) == (("new",), ("old",))
        assert (found.changed, found.unchanged) == (("turned",), ("same",))
        assert list(found.faulty) == ["bad"]
        assert set(pool.status()) == {"new", "same", "turned", "bad"}
        assert told.listings == [("old", 0)]
        assert await configured.reload() == Reloaded(
            unchanged=("new", "same", "turned"), faulty=found.faulty
        )


async def test_a_file_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    _write(file, fs={"command": "x"})
    async with _of(file) as (pool, configured):
        for raw in (b'{"mcpServers": ', b"\xff"):
            file.write_bytes(raw)
            with pytest.raises(Conflict, match="the servers of before stay"):
                await configured.reload()
            assert "mcp.json" in str(configured.fault)
            assert set(pool.status()) == {"fs"}
        file.unlink()
        assert (await configured.reload()).removed == ("fs",)
        assert configured.fault is None
    async with _of(None) as (_, nowhere):
        with pytest.raises(Conflict, match="set PML_MCP_SERVERS"):
            await nowhere.reload()


async def test_a_withdrawal_is_tried_again_unless_the_server_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pml_gateway.adapters.mcp_client.withdrawals._AGAIN_S", 0.01)
    told, admitted = Told(failures=2), list[str]()

    async def admit(server: str, tools: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        admitted.append(server)
        return tools

    withdrawals = Withdrawals(told, admit)
    await withdrawals.begin("a")
    await eventually(lambda: told.listings == [("a", 0)])
    told.failures = 1_000_000
    await withdrawals.begin("b")
    await withdrawals.drop("b")
    await withdrawals.begin("c")
    await withdrawals.close()
    assert (told.listings, admitted) == ([("a", 0)], ["a", "b", "c"])


@pytest.mark.parametrize(
    ("file", "workspace"), [("/w/mcp.json", "/w"), ("/w/.vscode/mcp.json", "/w")]
)
def test_the_workspace_is_the_folder_of_the_file_or_of_the_editors_folder(
    file: str, workspace: str
) -> None:
    places = places_of(Path(file), {"HOME": "/home/mira"})
    assert places == {
        "workspaceFolder": workspace,
        "workspaceFolderBasename": "w",
        "userHome": "/home/mira",
    }
