"""Ports that another process takes between their choice and the start."""

import itertools
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pml_local.composition import StackOptions
from pml_local.errors import PortTakenError, StackError
from pml_local.nats import NatsServer
from pml_local.parts import MOST_PORTS, start_on_free_port
from pml_local.ports import free_port, listening
from pml_local.services import ServiceSpec
from pml_local.stack import embedded_stack

pytestmark = pytest.mark.integration
FAKE = Path(__file__).with_name("fake_service.py")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another process listens on."""
    with listening(free_port()) as other:
        yield other.getsockname()[1]


def _choose_first(monkeypatch: pytest.MonkeyPatch, module: str, first: int) -> None:
    """Make a part choose this port first, as if it had been free."""
    ports = itertools.chain([first], iter(free_port, None))
    monkeypatch.setattr(f"pml_local.{module}.free_port", lambda: next(ports))


@pytest.mark.parametrize("part", ["nats", "postgres", "worker"])
async def test_a_part_whose_port_was_taken_meanwhile_starts_on_another(
    stack_home: Path, taken: int, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = {"nats": "nats", "postgres": "postgres", "worker": "composition"}[part]
    _choose_first(monkeypatch, module, taken)
    services = [
        ServiceSpec("worker", (sys.executable, str(FAKE))),
        ServiceSpec("gateway", (sys.executable, str(FAKE)), {}, "PML_GATEWAY_PORT"),
    ]
    async with embedded_stack(StackOptions(stack_home, services=services)) as stack:
        port = stack.parts[part].port
        assert port != taken
        urls = {"nats": stack.nats_url, "postgres": stack.postgres_dsn}
        assert f":{port}" in urls.get(part, f":{port}")


async def test_a_part_whose_port_is_free_again_once_it_has_exited_starts_on_another(
    stack_home: Path, tmp_path: Path
) -> None:
    lost = tmp_path / "lost"
    services = [
        ServiceSpec("worker", (sys.executable, str(FAKE), "port-lost", str(lost))),
        ServiceSpec("gateway", (sys.executable, str(FAKE)), {}, "PML_GATEWAY_PORT"),
    ]
    async with embedded_stack(StackOptions(stack_home, services=services)) as stack:
        assert str(stack.parts["worker"].port) != lost.read_text()


async def test_a_named_port_that_is_taken_is_an_error_with_its_number(
    tmp_path: Path, taken: int
) -> None:
    server = NatsServer(tmp_path / "nats", tmp_path / "nats.log", secrets.token_hex(), port=taken)
    with pytest.raises(PortTakenError, match=f"port {taken} on 127.0.0.1 is taken"):
        await start_on_free_port(server)


async def test_a_part_that_finds_every_port_taken_gives_up_with_the_reason(
    tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = list[int]()

    def choose() -> int:
        chosen.append(taken)
        return taken

    monkeypatch.setattr("pml_local.nats.free_port", choose)
    server = NatsServer(tmp_path / "nats", tmp_path / "nats.log", secrets.token_hex())
    with pytest.raises(StackError, match=f"port {taken} is taken"):
        await start_on_free_port(server)
    assert len(chosen) == MOST_PORTS
