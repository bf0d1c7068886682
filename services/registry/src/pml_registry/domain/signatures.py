"""Signatures of versions: what is signed, and what is wrong with a stored version."""

import hashlib
import json
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.scope import Scope

_PURPOSE = b"pml-capability-version-v1\n"

Fault = Literal["unsigned", "not_as_signed"]


@dataclass(frozen=True)
class Signature:
    """An Ed25519 signature, base64url, and the id of its key."""

    key_id: str
    value: str


@dataclass(frozen=True)
class VersionStatement:
    """The signed statement about a version: this number of this record is this code."""

    scope: Scope
    record_id: UUID
    number: int
    behaviour: UUID
    code_hash: str
    code: str

    def content(self) -> bytes:
        """Return the statement in canonical form, with the SHA-256 of the code's text. It begins
        with its purpose, so that no signature of other content is valid for it."""
        stated = {
            "org": self.scope.org,
            "project": self.scope.project,
            "record_id": str(self.record_id),
            "version": self.number,
            "behaviour": str(self.behaviour),
            "code_hash": self.code_hash,
            "text": hashlib.sha256(self.code.encode()).hexdigest(),
        }
        return _PURPOSE + json.dumps(stated, sort_keys=True, separators=(",", ":")).encode()

    @property
    def has_own_id(self) -> bool:
        """Whether the behaviour's id is that of its scope and code hash."""
        return self.behaviour == ids.capability_id(self.scope, self.code_hash)

    def __str__(self) -> str:
        return f"version {self.number} of record {self.record_id} in {self.scope}"


@dataclass(frozen=True)
class StoredVersion:
    """A version as stored, with its signature, if it has one."""

    statement: VersionStatement
    signature: Signature | None


def version_in(record: CapabilityRecord) -> StoredVersion:
    """Return the version that a record is shown with."""
    statement = VersionStatement(
        scope=record.scope,
        record_id=record.record_id,
        number=record.version,
        behaviour=record.capability_id,
        code_hash=record.code_hash,
        code=record.code,
    )
    return StoredVersion(statement, signature_of(record.key_id, record.signature))


def signature_of(key_id: str | None, value: str | None) -> Signature | None:
    """Join the two stored parts of a signature."""
    return None if key_id is None or value is None else Signature(key_id, value)


def explain(fault: Fault, version: StoredVersion) -> str:
    """Say why a version must not run, and what to do."""
    signature = version.signature
    what = "it has no signature"
    if fault == "not_as_signed":
        what = (
            f"what is stored of it is not what the key {signature.key_id if signature else ''} "
            "has signed, or that key is not trusted any more"
        )
    return f"{version.statement} is refused: {what}; restore the registry's tables from a backup"
