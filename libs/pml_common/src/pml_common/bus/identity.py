"""Signatures of senders, and their verification by readers."""

from collections.abc import Iterable
from functools import cache

from pml_common.bus.errors import BusError
from pml_common.contracts.catalog import SERVICES
from pml_common.signing import SigningKey, TrustedKeys

SIGNATURE = "Pml-Signature"
"""Header: `<kid>.<signature>`."""
_PURPOSE = "pml-message-v1"
_CACHE_SIZE = 512


class WrongSender(BusError):
    """An attempt to publish a message that only another service may publish."""


def signed_content(subject: str, message_id: str, digest: str) -> bytes:
    """Build the signed content of a message: subject, id, and the body's SHA-256 in hex."""
    return f"{_PURPOSE}\n{subject}\n{message_id}\n{digest}".encode()


class Identity:
    """The keys that a process signs with, and the public keys it trusts.

    A service has one key, its own. Recent signatures are cached: a message of our own, or one
    received twice, costs no second verification.
    """

    def __init__(self, keys: Iterable[SigningKey], trusted: TrustedKeys) -> None:
        self._keys = {key.service: key for key in keys}
        self.trusted = trusted
        self._verified: dict[str, tuple[str, bytes]] = {}

    def require(self, sender: str) -> None:
        """Raise WrongSender unless we have the sender's key."""
        if sender not in self._keys:
            raise WrongSender(f"only the {sender} may publish this; we are {', '.join(self._keys)}")

    def key_of(self, *services: str) -> SigningKey:
        """Return the key of the first of these services that we are. Raises WrongSender."""
        for service in services:
            if service in self._keys:
                return self._keys[service]
        raise WrongSender(f"only the {' and '.join(services)} may; we are {', '.join(self._keys)}")

    def sign(self, sender: str, content: bytes) -> str:
        """Return the header value for `content` signed by `sender`. Raises WrongSender."""
        self.require(sender)
        key = self._keys[sender]
        signed = f"{key.kid}.{key.sign(content)}"
        self._cache(signed, sender, content)
        return signed

    def fault(self, sender: str, content: bytes, signed: str | None) -> str | None:
        """Return why `signed` is no valid signature of the sender; None if it is."""
        if signed is None:
            return f"it has no signature; the {sender} signs what it publishes"
        if self._verified.get(signed) == (sender, content):
            return None
        kid, _, signature = signed.partition(".")
        if not self.trusted.verify(sender, kid, content, signature):
            return f"its signature (key {kid[:16]}) is not the {sender}'s"
        self._cache(signed, sender, content)
        return None

    def _cache(self, signed: str, sender: str, content: bytes) -> None:
        self._verified[signed] = sender, content
        if len(self._verified) > _CACHE_SIZE:
            del self._verified[next(iter(self._verified))]


@cache
def all_services_identity() -> Identity:
    """Return an identity with a generated key for every service, one per process: for MemoryBus
    and for tests. Services trust these keys only if configured to."""
    keys = all_services_keys()
    return Identity(keys, TrustedKeys(key.public for key in keys))


@cache
def all_services_keys() -> tuple[SigningKey, ...]:
    """Return the keys of `all_services_identity`."""
    return tuple(SigningKey.generate(service) for service in SERVICES)
