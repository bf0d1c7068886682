"""The policies of a file, read again whenever it changes."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pml_common.contracts.decision import Policy
from pml_common.contracts.policy_file import Policies, PolicyInvalid, parse_policies
from pml_common.contracts.scope import Scope
from pml_common.service import CannotStart

log = logging.getLogger(__name__)

_Version = tuple[int, int, int]
_NEVER: Final[_Version] = (0, 0, 0)

GONE_AFTER_S: Final = 10.0
"""A file missing for at most this time counts as being replaced by an editor."""


class PolicyFile:
    """Policies by scope. Without a file, or once it is gone for more than GONE_AFTER_S,
    `otherwise` applies to every scope. A file that cannot be read changes nothing: its last
    policies stay in force. `monotonic` is a clock in seconds. Raises CannotStart if the file is
    invalid at first."""

    def __init__(
        self,
        file: Path | None,
        otherwise: Policy,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._otherwise = Policies(otherwise)
        self._monotonic = monotonic
        self._missed_at: float | None = None
        self._policies = self._otherwise
        self._seen: _Version | None = None
        self._fault: str | None = None
        self._read()
        if self._fault is not None:
            raise CannotStart(self._fault)
        if file is not None and self._seen is None:
            log.warning("there is no file %s yet: the policy of the settings holds", file)

    def of(self, scope: Scope) -> Policy:
        """Return the present policy of a scope."""
        self._read()
        return self._policies.of(scope)

    def fault(self) -> str | None:
        """Return why the file's present content is not in force; None if it is."""
        self._read()
        return self._fault

    def _read(self) -> None:
        """Read the file if it has changed; checking that costs microseconds."""
        if self._file is None:
            return
        try:
            version = _version(self._file)
            if version is None:
                self._miss(self._file)
                return
            self._missed_at = None
            if version == self._seen:
                return
            text = self._file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._report(f"{self._file} cannot be read: {error}")
            self._seen = _NEVER
            return
        self._take(text)
        self._seen = version

    def _miss(self, file: Path) -> None:
        """Handle a file that is gone; the time counts from the first check that misses it."""
        if self._seen is None:
            return
        self._seen = _NEVER
        now = self._monotonic()
        self._missed_at = now if self._missed_at is None else self._missed_at
        if now - self._missed_at <= GONE_AFTER_S:
            hold = f"what it said holds for {GONE_AFTER_S:g} s more"
            self._report(f"{file} is gone; {hold}", logging.WARNING)
            return
        default = f"{file} is gone for more than {GONE_AFTER_S:g} s: the default policy holds"
        self._report(default, logging.WARNING)
        self._policies = self._otherwise

    def _take(self, text: str) -> None:
        try:
            self._policies = parse_policies(text)
        except PolicyInvalid as invalid:
            self._report(f"{self._file}: {invalid}")
            return
        self._fault = None
        log.info("policies loaded from %s", self._file)

    def _report(self, fault: str, level: int = logging.ERROR) -> None:
        if fault != self._fault:
            log.log(level, "%s", fault)
        self._fault = fault


def _version(file: Path) -> _Version | None:
    try:
        state = file.stat()
    except FileNotFoundError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
