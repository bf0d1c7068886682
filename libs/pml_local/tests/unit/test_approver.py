"""The approver's key: who can read it, where it is stored, and who gets its hash."""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from pml_local.approver import (
    approver_headers,
    default_key_file,
    read_key,
    user_name,
    write_key,
)
from pml_local.composition import StackOptions, compose
from pml_local.errors import ApproverKeyError
from pml_local.folder import DataFolder

NOBODY = 65534


def test_its_owner_alone_can_read_it_and_the_hash_is_that_of_the_key(tmp_path: Path) -> None:
    file = tmp_path / "state" / "approver.key"
    digest = write_key(file, tmp_path / "data")
    key = read_key(file)
    assert digest == hashlib.sha256(key.encode()).hexdigest()
    assert len(key) >= 40
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert approver_headers(file) == {"Authorization": f"Bearer {key}"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine_cannot_read_it(tmp_path: Path) -> None:
    file = (
        Path(tempfile.gettempdir()) / f"pml-approver-{os.getpid()}.key"
    )  # readable by other users
    try:
        write_key(file, tmp_path / "data")
        tried = subprocess.run(
            ["/bin/cat", str(file)], user=NOBODY, group=NOBODY, capture_output=True, check=False
        )
        assert tried.returncode != 0
        assert b"Permission denied" in tried.stderr
    finally:
        file.unlink()


def test_each_start_writes_a_new_one_with_its_own_mode_whatever_was_there(tmp_path: Path) -> None:
    file, elsewhere = tmp_path / "approver.key", tmp_path / "elsewhere"
    file.write_text("known to many")
    file.chmod(0o644)
    (tmp_path / "approver.key.new").symlink_to(elsewhere)
    write_key(file, tmp_path / "data")
    first = read_key(file)
    write_key(file, tmp_path / "data")
    assert first not in ("known to many", read_key(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert not elsewhere.exists(), "a link is not followed"


def test_it_lies_under_the_users_state_one_for_each_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    one, other = tmp_path / "one", tmp_path / "other"
    assert default_key_file(one, {}).is_relative_to(tmp_path / ".local/state/pml")
    assert default_key_file(one, {}) != default_key_file(other, {})
    assert default_key_file(one, {}) == default_key_file(one, {"XDG_STATE_HOME": "relative"})
    named = default_key_file(one, {"XDG_STATE_HOME": "/var/state"})
    assert named.is_relative_to("/var/state/pml")
    assert default_key_file(one, {"PML_APPROVER_KEY_FILE": "/k/ey"}) == Path("/k/ey")


def test_it_is_not_stored_where_tool_servers_commonly_have_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work = tmp_path / "data", tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    with pytest.raises(ApproverKeyError, match="is inside the data folder"):
        write_key(home / "approver.key", home)
    with pytest.raises(ApproverKeyError, match="is inside the working folder"):
        write_key(work / "deep" / "approver.key", home)
    monkeypatch.setenv("HOME", str(work / "user"))
    write_key(work / "user" / "approver.key", home)  # allowed: the working folder is their home


def test_a_key_that_is_not_there_or_none_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ApproverKeyError, match=r"cannot be read: .* PML_APPROVER_KEY_FILE"):
        read_key(tmp_path / "approver.key")
    (tmp_path / "empty").touch()
    with pytest.raises(ApproverKeyError, match="is empty"):
        read_key(tmp_path / "empty")
    (tmp_path / "file").touch()
    with pytest.raises(ApproverKeyError, match="cannot be written"):
        write_key(tmp_path / "file" / "approver.key", tmp_path / "data")


async def test_the_gateway_is_told_its_hash_and_no_service_the_key_or_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pml_local.composition.database_account", lambda: None)
    file, home = tmp_path / "state" / "approver.key", tmp_path / "data"
    monkeypatch.setenv("PML_APPROVER_KEY_FILE", str(file))
    home.mkdir()
    made = compose(StackOptions(home), DataFolder(home))
    assert made.approver_key == file
    told = {each.name: dict((await each.prepare()).env) for each in made.services}
    key = read_key(file)
    for env in told.values():
        assert key not in env.values()
        assert not [name for name, value in env.items() if str(file.parent) in value]
    digest = hashlib.sha256(key.encode()).hexdigest()
    assert told["gateway"]["PML_GATEWAY_APPROVER_KEY_SHA256"] == digest
    assert told["gateway"]["PML_GATEWAY_APPROVER"] == user_name()
    assert "PML_GATEWAY_APPROVER_KEY_SHA256" not in told["executor"]


def test_the_users_name_does_not_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    monkeypatch.setenv("USER", "somebody-else")
    assert user_name() != "somebody-else"
    monkeypatch.setattr("os.geteuid", lambda: 4_000_000_000)
    assert user_name() == "4000000000"
