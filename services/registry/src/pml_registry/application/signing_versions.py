"""Signing of the versions that the present key has not signed: those from before signatures, and,
after a change of the key, all others."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from pml_registry.application.version_checks import VersionChecks
from pml_registry.ports import SignatureStore, VersionRefused

log = logging.getLogger(__name__)

_AT_ONCE = 200
"""Versions in memory at a time."""


@dataclass(frozen=True)
class SigningVersions:
    """Signs stored versions once. `conclude` is called after it: from then on a version without a
    signature is refused."""

    store: SignatureStore
    checks: VersionChecks
    conclude: Callable[[], None]

    async def sign_all(self) -> None:
        """Sign every version that passes its check; report and leave the others. A repetition signs
        what is left. Raises StorageUnavailable."""
        signing, signed, after = self.checks.signing, 0, None
        while page := await self.store.others(signing.key_id, after, _AT_ONCE):
            for version in page:
                if self.checks.refusal(version) is not None:
                    continue
                try:
                    signature = await signing.sign(version.statement)
                except VersionRefused as error:
                    log.error("%s", error)
                    continue
                await self.store.replace(version, signature)
                signed += 1
            after = page[-1]
        if signed:
            log.info("signed %d versions with the key %s", signed, signing.key_id)
        self.conclude()
        self.checks.accepts_unsigned = False
