"""The approver: the holder of the approver's key, who alone may decide approvals."""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final

from pml_gateway.domain.api.errors import Unauthorized

PREFIX: Final = "approver:"
"""Prefix of approvers' principals; no agent's principal may have it."""

SCHEME: Final = "bearer"
"""The scheme of the Authorization header that has the key."""

_REMEDY: Final = (
    "a person decides, with the approver's key: `pml approvals show WORKFLOW`, then `pml approvals "
    "approve WORKFLOW` or `deny`, run by the user who started the stack (for a gateway elsewhere "
    "with --url and --key-file)"
)


@dataclass(frozen=True)
class Approver:
    """The person who decides. Only the hash of their key is known here; None disables deciding. An
    admin may change any record of the scope, too."""

    name: str
    key_sha256: str | None
    is_admin: bool = False

    @property
    def principal(self) -> str:
        """The approver's principal in approvals and grants."""
        return f"{PREFIX}{self.name}"

    def check(self, authorization: str | None) -> None:
        """Check an Authorization header. Raises Unauthorized, with the remedy."""
        if self.key_sha256 is None:
            raise Unauthorized(
                "approvals cannot be decided here: this gateway was started without "
                "PML_GATEWAY_APPROVER_KEY_SHA256, the SHA-256 of an approver's key"
            )
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != SCHEME or not key.strip():
            raise Unauthorized(f"the approver's key is missing: {_REMEDY}")
        shown = hashlib.sha256(key.strip().encode()).hexdigest()
        if not hmac.compare_digest(shown, self.key_sha256):
            raise Unauthorized(f"this is not the approver's key: {_REMEDY}")
