"""Folders of sockets: who may use them, and what killed processes leave in them."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pml_common.bus.sockets import folder as under_test
from pml_common.bus.sockets.folder import SocketFolder, SocketUnusable


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Closes sockets at the end of the test."""
    with ExitStack() as stack:
        yield stack


def test_each_replica_listens_on_a_socket_of_its_own(tmp_path: Path, opened: ExitStack) -> None:
    folder = SocketFolder(tmp_path / "sockets")
    assert folder.names() == []
    for name in ("one", "two"):
        opened.enter_context(folder.listen(name))
    assert folder.names() == ["one", "two"]
    assert folder.path.stat().st_mode & 0o777 == 0o700
    for name in ("one", "two"):
        opened.enter_context(folder.connect(name))
    folder.remove("one")
    assert folder.names() == ["two"]
    folder.remove("one")


def test_a_path_may_be_longer_than_a_sockets_address(tmp_path: Path, opened: ExitStack) -> None:
    folder = SocketFolder(tmp_path.joinpath(*["a-deep-folder"] * 20))
    listening = opened.enter_context(folder.listen("one"))
    opened.enter_context(folder.connect("one"))
    accepted, _ = listening.accept()
    accepted.close()


def test_a_socket_that_was_left_behind_refuses_and_is_removed(
    tmp_path: Path, opened: ExitStack
) -> None:
    folder = SocketFolder(tmp_path / "sockets")
    folder.listen("killed").close()
    with pytest.raises(SocketUnusable, match="refused"):
        folder.connect("killed")
    opened.enter_context(folder.listen("next"))
    assert folder.names() == ["next"]


def test_a_socket_with_a_full_backlog_refuses_at_once_and_is_not_removed(
    tmp_path: Path, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "_BACKLOG", 0)
    folder = SocketFolder(tmp_path / "sockets")
    opened.enter_context(folder.listen("busy"))
    opened.enter_context(folder.connect("busy"))
    with pytest.raises(SocketUnusable, match="unavailable"):
        folder.connect("busy")
    opened.enter_context(folder.listen("next"))
    assert folder.names() == ["busy", "next"]


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_may_enter_is_not_used(tmp_path: Path, mode: int) -> None:
    folder = SocketFolder(tmp_path / "sockets")
    folder.path.mkdir()
    folder.path.chmod(mode)
    for use in (folder.names, lambda: folder.listen("one"), lambda: folder.connect("one")):
        with pytest.raises(SocketUnusable, match="not our user's alone"):
            use()


def test_a_link_to_a_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    folder = SocketFolder(tmp_path / "link")
    folder.path.symlink_to(tmp_path / "real")
    with pytest.raises(SocketUnusable):
        folder.listen("one")


def test_a_folder_that_cannot_be_made_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = SocketFolder(tmp_path / "file" / "sockets")
    assert folder.names() == []
    with pytest.raises(SocketUnusable):
        folder.listen("one")


def test_another_users_folder_or_process_is_not_used(
    tmp_path: Path, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SocketFolder(tmp_path / "sockets")
    listening = opened.enter_context(folder.listen("one"))
    connected = opened.enter_context(folder.connect("one"))
    accepted: socket.socket = opened.enter_context(listening.accept()[0])
    assert under_test.require_own(accepted) == under_test.require_own(connected) == os.getpid()
    ours = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: ours + 1)
    with pytest.raises(SocketUnusable, match="not our user's"):
        folder.names()
    with pytest.raises(SocketUnusable, match=f"belongs to user {ours}"):
        under_test.require_own(accepted)
