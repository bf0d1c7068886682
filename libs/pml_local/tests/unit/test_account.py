"""The account of Postgres: made once, however many processes start together."""

import fcntl
import pwd
import subprocess
from pathlib import Path

import pytest

from pml_local.account import ACCOUNT_NAME, Account, database_account
from pml_local.errors import AccountError

ENTRY = pwd.struct_passwd((ACCOUNT_NAME, "x", 995, 994, "", "/nonexistent", "/usr/sbin/nologin"))


class Machine:
    """A machine whose account is missing at first; `useradd` answers with `code`."""

    def __init__(self, folder: Path, code: int = 0) -> None:
        self.lock = folder / "account" / "lock"
        self.code = code
        self.looks = 0
        self.made = 0
        self.appears_at: int | None = None
        """The look at which the account that another process made is there."""

    def find(self, name: str) -> pwd.struct_passwd:
        """Find the account (`pwd.getpwnam`)."""
        self.looks += 1
        if not self.made and (self.appears_at is None or self.looks < self.appears_at):
            raise KeyError(name)
        return ENTRY

    def useradd(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        """Make the account, if no other process may do so at the same time."""
        with self.lock.open() as again, pytest.raises(BlockingIOError):
            fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.made += not self.code
        return subprocess.CompletedProcess(command, self.code, "", "no space")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setattr("pml_local.account.SYSTEM_FOLDER", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", "/usr/sbin/{}".format)
    monkeypatch.setattr("pwd.getpwnam", made.find)
    monkeypatch.setattr("subprocess.run", made.useradd)
    return made


def test_a_missing_account_is_made_while_no_other_process_may(machine: Machine) -> None:
    assert database_account() == Account(995, 994)
    assert machine.made == 1


def test_an_account_that_another_process_made_meanwhile_is_not_made_again(machine: Machine) -> None:
    machine.appears_at = 2
    assert database_account() == Account(995, 994)
    assert machine.made == 0


def test_a_useradd_that_fails_is_told_with_what_to_do(machine: Machine) -> None:
    machine.code = 1
    with pytest.raises(AccountError, match=r"no space.*create the system account 'pml-postgres'"):
        database_account()


def test_an_ordinary_user_runs_postgres_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert database_account() is None
