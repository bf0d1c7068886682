"""The data folder: its lock, its secrets, and where Postgres lives."""

from pathlib import Path

import pytest

from pml_local.account import Account, reachable
from pml_local.errors import FolderInUseError, FolderOwnerError
from pml_local.folder import DataFolder, default_home, open_folder


def test_its_place_is_pml_home_else_dot_pml_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_home({}) == tmp_path / ".pml"
    assert default_home({"PML_HOME": "data"}) == tmp_path / "data"


def test_one_stack_at_a_time_holds_it(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    with (
        open_folder(home),
        pytest.raises(FolderInUseError, match="in use by process"),
        open_folder(home),
    ):
        pass
    with open_folder(home):
        pass


def test_another_users_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 4_321)
    with pytest.raises(FolderOwnerError, match="belongs to user"), open_folder(tmp_path):
        pass


def test_a_secret_is_made_once_and_private(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    secret = folder.secret("gateway")
    assert len(bytes.fromhex(secret)) == 32
    assert DataFolder(tmp_path).secret("gateway") == secret
    assert folder.secret("nats") != secret
    assert (tmp_path / "secrets" / "gateway").stat().st_mode & 0o777 == 0o600


def test_postgres_lives_in_the_home_of_an_ordinary_user(tmp_path: Path) -> None:
    assert DataFolder(tmp_path).postgres(None) == tmp_path / "postgres"


def test_where_its_account_cannot_reach_the_home_postgres_lives_elsewhere_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(name: str) -> Path:
        return tmp_path / "var" / name

    monkeypatch.setattr("pml_local.account.system_folder", elsewhere)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    account = Account(uid=4_321, gid=4_321)
    chosen = DataFolder(home).postgres(account)
    assert chosen.parent == tmp_path / "var"
    home.chmod(0o711)
    assert DataFolder(home).postgres(account) == chosen


def test_a_folder_is_reachable_when_everyone_may_pass_through_all_above_it(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "open"
    inner.mkdir(parents=True, mode=0o711)
    inner.parent.chmod(0o700)
    assert not reachable(inner)
    assert reachable(Path("/"))
