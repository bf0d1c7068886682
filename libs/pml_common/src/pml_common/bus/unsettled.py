"""Messages that one replica has not settled, of consumers that replicas of several scopes share.

The server counts deliveries to all of them, and knows no scopes: here is what concerns this one.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from pml_common.bus import names
from pml_common.contracts.scope import Scope

_REMEMBERED = 10_000
_FORGOTTEN_S = 300.0


@dataclass
class _Failing:
    subject: str
    times: int
    since: float
    last: float


class Unsettled:
    """Failures of this replica by consumer and message, and the scopes that it leaves to others."""

    def __init__(self, now: Callable[[], float] = monotonic, most: int = _REMEMBERED) -> None:
        """`now` is in seconds; of more than `most` failing messages the longest known is
        forgotten."""
        self._now = now
        self._most = most
        self._failing: dict[tuple[str, str], _Failing] = {}
        self._left: set[tuple[str, Scope]] = set()

    def fail(self, durable: str, message_id: str, subject: str) -> int:
        """Return how often the message has failed here, this time included."""
        now, key = self._now(), (durable, message_id or subject)
        found = self._failing.setdefault(key, _Failing(subject, 0, now, now))
        found.times, found.last = found.times + 1, now
        if len(self._failing) > self._most:
            del self._failing[next(iter(self._failing))]
        return found.times

    def settle(self, durable: str, message_id: str, subject: str) -> None:
        """Forget a message that was handled or dead-lettered."""
        self._failing.pop((durable, message_id or subject), None)

    def leave(self, durable: str, subject: str) -> None:
        """Remember that a message's scope is served elsewhere."""
        self._left.add((durable, names.parse_subject(subject).scope))

    def left_scope(self, durable: str, subject: str) -> Scope | None:
        """Return the scope of a message if this replica leaves that to others, else None."""
        with suppress(ValueError):  # anybody's subject
            scope = names.parse_subject(subject).scope
            return scope if (durable, scope) in self._left else None
        return None

    def failing(self, durable: str, for_s: float) -> tuple[str, float] | None:
        """Return the subject of the message that has failed here the longest, and for how many
        seconds, if for at least `for_s`. What has not failed again for a while was handled by
        another replica."""
        now = self._now()
        for key in [key for key, each in self._failing.items() if now - each.last > _FORGOTTEN_S]:
            del self._failing[key]
        found = (
            (each.subject, now - each.since)
            for (consumer, _), each in self._failing.items()
            if consumer == durable and now - each.since >= for_s
        )
        return next(found, None)
