"""The registry's keys, which sign versions."""

from typing_extensions import override

from pml_common.signing import SigningKey, TrustedKeys
from pml_registry.domain.signatures import Signature, VersionStatement
from pml_registry.ports import CodeHashing, VersionRefused, VersionSigning

_CACHE_SIZE = 10_000


class VersionKeys(VersionSigning):
    """Signs with the service's key and caches the latest valid signatures."""

    def __init__(
        self,
        key: SigningKey,
        trusted: TrustedKeys,
        hashing: CodeHashing,
        most: int = _CACHE_SIZE,
    ) -> None:
        self._key = key
        self._trusted = trusted
        self._hashing = hashing
        self._most = most
        self._valid: dict[tuple[bytes, Signature], None] = {}

    @property
    @override
    def key_id(self) -> str:
        return self._key.kid

    @override
    async def sign(self, statement: VersionStatement) -> Signature:
        found = await self._hashing.hash_of(statement.code)
        if found != statement.code_hash or not statement.has_own_id:
            raise VersionRefused(
                f"{statement} is not signed: the hash of its code is {found}, not "
                f"{statement.code_hash}, or {statement.behaviour} is not that hash's id"
            )
        return Signature(self._key.kid, self._key.sign(statement.content()))

    @override
    def is_signed(self, statement: VersionStatement, signature: Signature) -> bool:
        content = statement.content()
        if (content, signature) in self._valid:
            return True
        signer = self._key.service, signature.key_id
        if not self._trusted.verify(*signer, content, signature.value):
            return False
        self._valid[content, signature] = None
        if len(self._valid) > self._most:
            del self._valid[next(iter(self._valid))]
        return True
