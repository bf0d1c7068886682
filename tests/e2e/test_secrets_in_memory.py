"""Secrets of each service: in its own memory, and in no other service's, nor in its parent's."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from pml_common.contracts.catalog import SERVICES
from pml_local.postgres_cluster import ROLES
from tests.e2e.harness import INPUT, StackHarness

pytestmark = pytest.mark.e2e

CHUNK = 16 * 2**20
UNREADABLE = ("[vvar", "[vsyscall]")


def secrets_of(harness: StackHarness) -> Mapping[str, Mapping[str, str]]:
    """By service: its passwords for NATS and for Postgres, its private key, and what only the
    `mcpServers` file refers to; and by `stack`, the passwords that no service has."""
    home = harness.stack.home
    owners = {name: (home / "secrets" / name).read_text() for name in ("nats", "postgres")}
    found: dict[str, dict[str, str]] = {"stack": owners}
    for service in SERVICES:
        key = (home / "keys" / f"{service}.pem").read_text().splitlines()[1]
        found[service] = {"nats": (home / "secrets" / f"nats-{service}").read_text(), "key": key}
        if service in ROLES:
            found[service]["postgres"] = (home / "secrets" / f"postgres-{service}").read_text()
    found["gateway"]["input"] = INPUT
    return found


def parts_of_memory(pid: int) -> Iterator[bytes]:
    """Read all readable memory of a process, in overlapping parts."""
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb") as memory:
        for line in maps:
            place, access = line.split()[:2]
            if "r" not in access or any(name in line for name in UNREADABLE):
                continue
            start, end = (int(number, 16) for number in place.split("-"))
            for at in range(start, end, CHUNK):
                memory.seek(at)
                try:
                    yield memory.read(min(CHUNK + 256, end - at))
                except OSError:  # a device's, or gone since
                    break


def found_in(pid: int, wanted: Mapping[str, str]) -> set[str]:
    """Return the names of the texts that a process has in memory."""
    texts = {name: text.encode() for name, text in wanted.items()}
    return {name for part in parts_of_memory(pid) for name, text in texts.items() if text in part}


def test_no_service_and_no_parent_has_anothers_secrets(harness: StackHarness) -> None:
    every = secrets_of(harness)
    pids = {service: harness.stack.pid_of(service) for service in SERVICES}
    for service, pid in pids.items():
        own = set(every[service].values())
        others = {
            f"{other}'s {name}": text
            for other, secrets in every.items()
            for name, text in secrets.items()
            if text not in own
        }
        assert found_in(pid, others) == set(), service
        shown = {"nats", "postgres"} if service in ROLES else {"nats"}
        assert found_in(pid, every[service]) >= shown, service  # else nothing would be found
        assert psutil.Process(pid).environ() == {}
    (parent,) = {psutil.Process(pid).ppid() for pid in pids.values()}
    everything = {
        f"{service}'s {name}": text
        for service, secrets in every.items()
        for name, text in secrets.items()
    }
    assert found_in(parent, everything) == set()
    assert psutil.Process(parent).environ() == {}
