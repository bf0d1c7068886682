"""Keys and passwords of a deployment, generated once into a folder.

```
<folder>/passwords.json   of the users of NATS and Postgres, and others; 0600
<folder>/approver.key     the key of the person who decides approvals; 0600
<folder>/<service>.pem, trusted.json   pml_local.keys
```
A second run reads the same. How they reach the services is the business of tools/k8s/secrets.py and
tools/compose/secrets.py.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pml_common.contracts.catalog import SERVICES
from pml_common.storage.roles import roles_of
from pml_local.keys import TRUSTED, make_keys
from pml_local.nats_users import OPERATOR

STORED = ("gateway", "learner", "registry")
"""The services with a schema in Postgres, its owner and a login."""
_NEEDED = (
    *(f"nats-{name}" for name in (*SERVICES, OPERATOR)),
    *(f"postgres-{name}" for name in STORED),
    *(f"postgres-{name}-login" for name in STORED),
    "qdrant",
    "approver",
)


@dataclass(frozen=True)
class Credentials:
    """Generated keys and passwords; `passwords` by the name of their use."""

    folder: Path
    passwords: Mapping[str, str]

    @property
    def trusted_keys(self) -> str:
        """The file of all services' public keys."""
        return (self.folder / TRUSTED).read_text(encoding="utf-8")

    @property
    def approver_key_sha256(self) -> str:
        """The hash of the approver's key, in hex."""
        return hashlib.sha256(self.passwords["approver"].encode()).hexdigest()

    @property
    def nats_passwords(self) -> str:
        """The variables that the users of NATS refer to, as a file of its configuration."""
        return "".join(
            f'PML_NATS_PASSWORD_{each.upper()} = "{self.passwords[f"nats-{each}"]}"\n'
            for each in (*SERVICES, OPERATOR)
        )

    @property
    def qdrant_config(self) -> str:
        """The configuration of Qdrant that asks for its key; JSON is YAML."""
        return json.dumps({"service": {"api_key": self.passwords["qdrant"]}})

    def signing_key(self, service: str) -> str:
        """The private key of a service, PEM."""
        return (self.folder / f"{service}.pem").read_text(encoding="utf-8")

    def nats_url(self, service: str, server: str) -> str:
        """The address of NATS for a service; `server` is host:port."""
        return f"nats://{service}:{self.passwords[f'nats-{service}']}@{server}"

    def postgres_dsn(self, service: str, database: str) -> str:
        """The address of Postgres for a service; `database` is host:port/name?options."""
        password = self.passwords[f"postgres-{service}-login"]
        return f"postgresql://{login_of(service)}:{password}@{database}"

    def owner_dsn(self, service: str, database: str) -> str:
        """The address of Postgres for the owner of a service's schema, who migrates it."""
        return f"postgresql://{service}:{self.passwords[f'postgres-{service}']}@{database}"


def login_of(service: str) -> str:
    """Return the user of Postgres as which a service logs in; its schema's owner has its name."""
    return roles_of(service, service).login


def make_credentials(folder: Path, *more: str) -> Credentials:
    """Read keys and passwords, and generate those that are missing, of `more` uses besides.
    Raises KeyUnreadable."""
    make_keys(folder, SERVICES)
    file = folder / "passwords.json"
    known: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    needed = dict.fromkeys((*_NEEDED, *more, *known))
    made = {name: known.get(name) or f"p{secrets.token_hex(24)}" for name in needed}
    if made != known:
        _write_privately(file, json.dumps(made, indent=2))
    _write_privately(folder / "approver.key", made["approver"])
    return Credentials(folder, made)


def _write_privately(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text, encoding="utf-8")
