"""The services' signing keys in the data folder.

```
<home>/keys/<service>.pem    its private key, generated once; 0600
<home>/keys/trusted.json     every public key, current and earlier
<home>/keys/versions-signed  made by the registry once all versions of capabilities are signed
```
To replace a service's key, remove its file before the next start. The old public key stays trusted,
for stored messages that it signed, until it is removed from `trusted.json`; versions that it signed
are signed with the new one at that start. `python -m pml_local.keys FOLDER` generates keys for
services that are started by hand.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from pml_common.contracts.catalog import SERVICES
from pml_common.signing import SigningKey, TrustedKeys

TRUSTED = "trusted.json"
SIGNED_MARK = "versions-signed"


def make_keys(folder: Path, services: Iterable[str]) -> None:
    """Generate missing keys and list all public ones. Raises KeyUnreadable."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / TRUSTED
    trusted = before = TrustedKeys.load(file) if file.exists() else TrustedKeys()
    for service in services:
        trusted = trusted.with_key(_key_of(folder, service).public)
    if trusted.keys != before.keys:
        aside = file.with_name(f"{TRUSTED}.new")
        aside.write_text(trusted.to_json())
        aside.replace(file)


def key_variables(folder: Path, service: str) -> dict[str, str]:
    """Environment variables that point the service to its keys."""
    private = folder / f"{service}.pem"
    return {"PML_SIGNING_KEY": str(private), "PML_TRUSTED_KEYS": str(folder / TRUSTED)}


def _key_of(folder: Path, service: str) -> SigningKey:
    file = folder / f"{service}.pem"
    if file.exists():
        return SigningKey.load(service, file)
    key = SigningKey.generate(service)
    key.save(file)
    return key


if __name__ == "__main__":
    make_keys(Path(sys.argv[1]), SERVICES)
