"""A stack of fake services on real NATS and Postgres."""

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_local.composition import StackOptions
from pml_local.errors import PartFailedError, PortTakenError
from pml_local.events import (
    Event,
    PartExited,
    PartReady,
    PartRestarting,
    StackReady,
    StackStopped,
    StackStopping,
    WaitingForMcpServers,
)
from pml_local.services import ServiceSpec
from pml_local.stack import embedded_stack
from pml_local.state import PartDown, read_state

pytestmark = pytest.mark.integration
FAKE = Path(__file__).with_name("fake_service.py")


def fake(name: str, *mode: str, start_within: float = 60.0) -> ServiceSpec:
    """A fake service; one named `gateway` listens on the gateway's port."""
    variable = "PML_GATEWAY_PORT" if name == "gateway" else "PML_HEALTH_PORT"
    return ServiceSpec(name, (sys.executable, str(FAKE), *mode), {}, variable, start_within)


async def test_every_part_that_crashes_comes_back_on_its_port(stack_home: Path) -> None:
    events: list[Event] = []
    services = [fake("gateway"), fake("worker")]
    async with embedded_stack(StackOptions(stack_home, services=services), events.append) as stack:
        for name, before in stack.parts.items():
            events.clear()
            os.kill(before.pid, signal.SIGKILL)
            ready = await eventually(lambda: [e for e in events if isinstance(e, PartReady)])
            assert ready[0].name == name
            assert (stack.parts[name].port, stack.pid_of(name)) == (before.port, ready[0].pid)
            exited = next(e for e in events if isinstance(e, PartExited))
            assert (exited.name, exited.code) == (name, -signal.SIGKILL)
            again = next(e for e in events if isinstance(e, PartRestarting))
            assert (again.failures, again.delay) == (1, 0.1)
            state = read_state(stack_home)
            assert state is not None
            assert state.parts[name].pid == ready[0].pid


async def test_a_stopped_part_comes_back_on_its_port(
    stack_home: Path,
) -> None:
    services = [fake("gateway"), fake("worker")]
    async with embedded_stack(StackOptions(stack_home, services=services)) as stack:
        before = stack.parts["worker"]
        async with stack.without("worker"):
            assert "worker" not in stack.parts
        after = stack.parts["worker"]
        assert after.port == before.port
        assert after.pid != before.pid


async def test_its_events_are_emitted_in_order(stack_home: Path) -> None:
    events: list[Event] = []
    options = StackOptions(stack_home, services=[fake("gateway")])
    async with embedded_stack(options, events.append) as stack:
        ready = [event.name for event in events if isinstance(event, PartReady)]
        assert set(ready[:2]) == {"nats", "postgres"}
        assert ready[2:] == ["gateway"]
        assert isinstance(events[-1], StackReady)
        assert events[-1].url == stack.url == f"http://127.0.0.1:{stack.parts['gateway'].port}"
        pid = stack.pid_of("gateway")
        await stack.restart("gateway")
        assert stack.pid_of("gateway") != pid
    assert [type(e) for e in events if isinstance(e, StackStopping | StackStopped)] == [
        StackStopping,
        StackStopped,
    ]
    assert stack.parts == {}


def write_server_states(file: Path, **states: str) -> None:
    """Set the MCP servers' states that a fake gateway reports; the tools of a `ready` one are
    listed."""
    servers = [
        {"name": name, "state": state, "error": None, "announced": state == "ready"}
        for name, state in states.items()
    ]
    file.with_suffix(".new").write_text(json.dumps({"servers": servers}))
    file.with_suffix(".new").rename(file)


async def test_it_is_ready_once_its_mcp_servers_have_listed_or_failed(
    stack_home: Path, tmp_path: Path
) -> None:
    file, events = tmp_path / "servers", list[Event]()
    write_server_states(file, fs="connecting", web="failed", git="ready")

    def on_event(event: Event) -> None:
        if isinstance(event, WaitingForMcpServers):
            write_server_states(file, fs="ready", web="failed", git="ready")
        events.append(event)

    services = [fake("gateway", "servers", str(file))]
    options = StackOptions(stack_home, services=services, servers_within=60.0)
    async with embedded_stack(options, on_event):
        awaited, ready = events[-2:]
        assert awaited == WaitingForMcpServers(("fs",))
        assert isinstance(ready, StackReady)
        assert ready.servers == {"fs": "", "web": "failed", "git": ""}


async def test_it_waits_for_mcp_servers_no_longer_than_it_was_told(
    stack_home: Path, tmp_path: Path
) -> None:
    file, events = tmp_path / "servers", list[Event]()
    write_server_states(file, fs="connecting")
    services = [fake("gateway", "servers", str(file))]
    options = StackOptions(stack_home, services=services, servers_within=0.0)
    async with embedded_stack(options, events.append):
        (ready,) = [event for event in events if isinstance(event, StackReady)]
        assert ready.servers == {"fs": "is still connecting"}


async def test_a_part_that_never_gets_ready_is_named_with_its_reason(stack_home: Path) -> None:
    services = [fake("gateway"), fake("worker", "unready", start_within=5.0)]
    with pytest.raises(PartFailedError, match=r"worker was not ready .*cellar is flooded"):
        async with embedded_stack(StackOptions(stack_home, services=services)):
            pass
    assert read_state(stack_home) is None


async def test_a_part_that_ends_at_its_start_is_named_with_the_end_of_its_log(
    stack_home: Path,
) -> None:
    services = [fake("gateway"), fake("worker", "failing")]
    with pytest.raises(PartFailedError, match=r"worker ended with code 3 .*(.|\n)*no luck today"):
        async with embedded_stack(StackOptions(stack_home, services=services)):
            pass


async def test_a_part_that_fails_later_is_reported_and_restarted(
    stack_home: Path, tmp_path: Path
) -> None:
    trouble, events = tmp_path / "trouble", list[Event]()
    services = [fake("gateway"), fake("worker", "fails-with", str(trouble))]

    def down() -> Mapping[str, PartDown]:
        state = read_state(stack_home)
        assert state is not None
        assert ("worker" in state.parts) is not ("worker" in state.down)
        return state.down

    async with embedded_stack(StackOptions(stack_home, services=services), events.append) as stack:
        assert down() == {}
        trouble.touch()
        os.kill(stack.pid_of("worker"), signal.SIGKILL)
        first = await eventually(lambda: down().get("worker"))
        later = await eventually(lambda: [d for d in down().values() if d.failures > 2])
        assert list(down()) == ["worker"]
        assert later[0].since == first.since < later[0].next_try
        assert "ended with code 3 before it was ready" in later[0].reason
        trouble.unlink()
        await eventually(lambda: not down())


async def test_a_port_asked_for_by_number_must_be_free(stack_home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = StackOptions(stack_home, gateway_port=port, services=[fake("gateway")])
        with pytest.raises(PortTakenError, match=f"port {port} on 127.0.0.1 is taken"):
            async with embedded_stack(options):
                pass


async def test_the_children_of_a_part_end_with_it(stack_home: Path, tmp_path: Path) -> None:
    written = tmp_path / "pid"
    services = [fake("gateway", "family", str(written))]
    async with embedded_stack(StackOptions(stack_home, services=services)):
        child = int(written.read_text())
        os.kill(child, 0)
    await eventually(lambda: not Path(f"/proc/{child}").exists())


async def test_secrets_and_state_are_readable_by_their_owner_alone(stack_home: Path) -> None:
    options = StackOptions(stack_home, services=[fake("gateway")])
    async with embedded_stack(options):
        secrets = [*(stack_home / "secrets").iterdir(), stack_home / "stack.json"]
        secrets.append(stack_home / "nats" / "nats-server.conf")
        assert {file.stat().st_mode & 0o777 for file in secrets} == {0o600}
        passwords = [file.read_text() for file in (stack_home / "secrets").iterdir()]
        assert len(set(passwords)) == 10
        private = [*(stack_home / "keys").glob("*.pem")]
        assert len(private) == 5
        assert {file.stat().st_mode & 0o777 for file in private} == {0o600}
        logs = "".join(log.read_text() for log in (stack_home / "logs").iterdir())
        assert not [password for password in passwords if password in logs]
