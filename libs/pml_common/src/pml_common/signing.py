"""Ed25519 keys: each service signs what it publishes and holds the others' public keys.

One key signs several kinds of content (messages, grants): each kind begins its content with a name
of its own, so that no signature of one kind is valid for another. Two keys also give their services
a secret that no other has (X25519 on the same points), for what is authenticated between two alone.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import BaseModel, ConfigDict, ValidationError

from pml_common.contracts.fault_words import faults_of

_KEY_BYTES = 32
_KID_DIGITS = 16
_PRIME = 2**255 - 19
"""Of the field of Curve25519."""


class KeyUnreadable(Exception):
    """A key file cannot be used; the message names the file, the reason and the remedy."""

    def __init__(self, path: Path, reason: str, remedy: str) -> None:
        super().__init__(f"the key file {path} cannot be used: {reason}; {remedy}")
        self.path = path


class _KeyEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    service: str
    kid: str
    key: str


class _KeyFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: tuple[_KeyEntry, ...]


@dataclass(frozen=True)
class PublicKey:
    """Verifies what one service signed; `raw` is the key's 32 bytes."""

    service: str
    raw: bytes

    @cached_property
    def kid(self) -> str:
        """The key's id: the first 16 hex digits of the SHA-256 of its bytes."""
        return hashlib.sha256(self.raw).hexdigest()[:_KID_DIGITS]

    @cached_property
    def _key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.raw)

    @property
    def pem(self) -> str:
        """The key as `openssl pkey -pubout` writes it."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self._key.public_bytes(serialization.Encoding.PEM, form).decode()

    @property
    def exchange(self) -> X25519PublicKey:
        """The same point of the curve in X25519's form: u = (1 + y) / (1 - y), RFC 7748."""
        y = int.from_bytes(self.raw, "little") & ((1 << 255) - 1)
        u = (1 + y) * pow(1 - y, -1, _PRIME) % _PRIME
        return X25519PublicKey.from_public_bytes(u.to_bytes(_KEY_BYTES, "little"))

    def verifies(self, content: bytes, signature: str) -> bool:
        """Return whether `signature` is this key's signature of `content`."""
        try:
            self._key.verify(_decoded(signature), content)
        except (InvalidSignature, binascii.Error, ValueError):
            return False
        return True


class SigningKey:
    """The private key of one service."""

    def __init__(self, service: str, key: Ed25519PrivateKey) -> None:
        self.service = service
        self._key = key
        self.public = PublicKey(service, key.public_key().public_bytes_raw())
        self.kid = self.public.kid

    @classmethod
    def generate(cls, service: str) -> Self:
        """Generate a new key."""
        return cls(service, Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, service: str, path: Path) -> Self:
        """Load the key from a PEM file (PKCS8, not encrypted). Raises KeyUnreadable."""
        remedy = f"make one with `openssl genpkey -algorithm ed25519 -out {path}`"
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise KeyUnreadable(path, str(error), remedy) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise KeyUnreadable(path, "it holds no Ed25519 key", remedy)
        return cls(service, key)

    def save(self, path: Path) -> None:
        """Write the key as PEM, readable by its user only, atomically."""
        pem = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        aside = path.with_name(f"{path.name}.new")
        aside.unlink(missing_ok=True)
        aside.touch(mode=0o600)
        aside.write_bytes(pem)
        aside.replace(path)

    def sign(self, content: bytes) -> str:
        """Return the signature of `content`: base64url without padding, 86 characters."""
        return _encoded(self._key.sign(content))

    def shared_with(self, other: PublicKey, purpose: str) -> bytes:
        """Derive the 32 bytes that only the holders of this key and of the other's private one can
        derive, for one purpose; the same for both."""
        # Ed25519's scalar is the head of the seed's hash; X25519 clamps it in the same way.
        scalar = hashlib.sha512(self._key.private_bytes_raw()).digest()[:_KEY_BYTES]
        secret = X25519PrivateKey.from_private_bytes(scalar).exchange(other.exchange)
        info = "\n".join((purpose, *sorted((self.kid, other.kid)))).encode()
        return HKDF(hashes.SHA256(), _KEY_BYTES, salt=None, info=info).derive(secret)


class TrustedKeys:
    """The public keys of all services; a service has several while its key is being replaced."""

    def __init__(self, keys: Iterable[PublicKey] = ()) -> None:
        self._keys = {(key.service, key.kid): key for key in keys}

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """All keys."""
        return tuple(self._keys.values())

    def of(self, service: str) -> tuple[PublicKey, ...]:
        """Return the keys of one service."""
        return tuple(key for key in self.keys if key.service == service)

    def find(self, service: str, kid: str) -> PublicKey | None:
        """Return a service's key by its id."""
        return self._keys.get((service, kid))

    def verify(self, service: str, kid: str, content: bytes, signature: str) -> bool:
        """Return whether `service` made `signature` of `content` with its key `kid`."""
        key = self.find(service, kid)
        return key is not None and key.verifies(content, signature)

    def with_key(self, key: PublicKey) -> "TrustedKeys":
        """Return these keys and one more."""
        return TrustedKeys((*self.keys, key))

    def to_json(self) -> str:
        """Serialise the keys in the format of `load`."""
        entries = [
            {"service": key.service, "kid": key.kid, "key": _encoded(key.raw)} for key in self.keys
        ]
        return json.dumps({"keys": entries}, indent=2) + "\n"

    @classmethod
    def load(cls, path: Path) -> "TrustedKeys":
        """Load a JSON file: `{"keys": [{"service", "kid", "key"}]}`, each key as base64url of its
        32 bytes. Raises KeyUnreadable."""
        remedy = "it lists the public key of every service as `pml up` does in its `keys` folder"
        try:
            read = _KeyFile.model_validate_json(path.read_bytes())
            return cls([_public_key(entry) for entry in read.keys])
        except ValidationError as error:
            raise KeyUnreadable(path, "; ".join(faults_of(error)), remedy) from error
        except (OSError, binascii.Error, ValueError) as error:
            raise KeyUnreadable(path, str(error), remedy) from error


def _public_key(entry: _KeyEntry) -> PublicKey:
    key = PublicKey(entry.service, _decoded(entry.key))
    if len(key.raw) != _KEY_BYTES:
        raise ValueError(f"the key {entry.kid} of {entry.service} has {len(key.raw)} bytes, not 32")
    if key.kid != entry.kid:
        raise ValueError(f"the key of {entry.service} has the id {key.kid}, not {entry.kid}")
    return key


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
