"""Free space on the disks of the stores."""

import os
from pathlib import Path

import pytest

from pml_gateway.adapters.disk_space import DiskSpace, free_bytes
from pml_gateway.domain.api.errors import Unavailable
from pml_gateway.settings import GatewaySettings

NATS, POSTGRES = Path("/data/nats"), Path("/data/postgres")


async def test_the_folder_whose_disk_has_too_little_is_named_with_what_is_left() -> None:
    left = {NATS: 1000, POSTGRES: 999}
    room = DiskSpace([NATS, POSTGRES], 1000, left.get)
    with pytest.raises(Unavailable, match=r"disk of /data/postgres has 999 bytes left.*1,000"):
        room.require()
    assert "/data/postgres" in str(await room.check())


async def test_it_looks_once_a_moment_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = list[Path]()

    def look(folder: Path) -> int:
        looks.append(folder)
        return 10

    room = DiskSpace([NATS], 10, look)
    for _ in range(5):
        room.require()
    assert looks == [NATS]
    monkeypatch.setattr("pml_gateway.adapters.disk_space._BELIEVED_S", 0.0)
    DiskSpace([NATS], 10, look).require()
    assert looks == [NATS, NATS]


async def test_a_folder_that_nobody_can_look_at_refuses_nothing(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "nowhere") is None
    assert (free_bytes(tmp_path) or 0) > 0
    DiskSpace([tmp_path / "nowhere"], 2**60).require()


def test_folders_are_told_as_a_path_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert GatewaySettings().gateway_data_folders == ()
    monkeypatch.setenv("PML_GATEWAY_DATA_FOLDERS", f"{NATS}{os.pathsep}{POSTGRES}{os.pathsep}")
    monkeypatch.setenv("PML_GATEWAY_MIN_FREE_MIB", "7")
    found = GatewaySettings()
    assert found.gateway_data_folders == (NATS, POSTGRES)
    assert found.gateway_min_free_mib == 7
