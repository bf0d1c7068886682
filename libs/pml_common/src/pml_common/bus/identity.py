"""Who states a message: its sender's signature, and what a reader requires of it."""

from collections.abc import Iterable
from functools import cache

from pml_common.bus.errors import BusError
from pml_common.contracts.catalog import SERVICES
from pml_common.signing import SigningKey, TrustedKeys

SIGNATURE = "Pml-Signature"
"""Header: `<kid>.<signature>`."""
_PURPOSE = "pml-message-v1"
_REMEMBERED = 512


class NotOurs(BusError):
    """We were to publish what another service alone may state."""


def statement(subject: str, message_id: str, digest: str) -> bytes:
    """What a sender signs: where it is published, under which id, and the body's SHA-256 in hex."""
    return f"{_PURPOSE}\n{subject}\n{message_id}\n{digest}".encode()


class Identity:
    """The keys that a process signs with, and the public keys it believes.

    A service has one key, its own. What was signed or verified here is remembered for a while:
    what a replica hears of itself, or gets twice, costs no second verification.
    """

    def __init__(self, keys: Iterable[SigningKey], trusted: TrustedKeys) -> None:
        self._keys = {key.service: key for key in keys}
        self._trusted = trusted
        self._known: dict[str, tuple[str, bytes]] = {}

    def require(self, sender: str) -> None:
        """Raise NotOurs unless we are the sender."""
        if sender not in self._keys:
            raise NotOurs(f"only the {sender} may publish this; we are {', '.join(self._keys)}")

    def sign(self, sender: str, content: bytes) -> str:
        """The header's value for what `sender` states. Raises NotOurs."""
        self.require(sender)
        key = self._keys[sender]
        signed = f"{key.kid}.{key.sign(content)}"
        self._remember(signed, sender, content)
        return signed

    def fault(self, sender: str, content: bytes, signed: str | None) -> str | None:
        """Why `content` is not to be believed as the sender's; None where it is."""
        if signed is None:
            return f"it has no signature; the {sender} signs what it publishes"
        if self._known.get(signed) == (sender, content):
            return None
        kid, _, signature = signed.partition(".")
        if not self._trusted.verify(sender, kid, content, signature):
            return f"its signature (key {kid[:16]}) is not the {sender}'s"
        self._remember(signed, sender, content)
        return None

    def _remember(self, signed: str, sender: str, content: bytes) -> None:
        self._known[signed] = sender, content
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]


@cache
def everyone() -> Identity:
    """One that holds a new key of every service, the same for the whole process: for the bus's
    twin and for tests. No service trusts these keys unless it is told to."""
    keys = everyones_keys()
    return Identity(keys, TrustedKeys(key.public for key in keys))


@cache
def everyones_keys() -> tuple[SigningKey, ...]:
    """The keys of `everyone`."""
    return tuple(SigningKey.generate(service) for service in SERVICES)
