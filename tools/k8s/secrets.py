"""Makes the secrets that deploy/k8s refers to.

`python -m tools.k8s.secrets NAMESPACE FOLDER` prints them as one manifest for `kubectl apply -f -`.
Keys and passwords are generated once into FOLDER (0700), and the approver's key beside them; a
second run prints the same. Where a vault holds your secrets, this shows which there have to be.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pml_common.contracts.catalog import SERVICES
from pml_local.keys import TRUSTED
from pml_local.nats_users import OPERATOR
from tools.credentials import STORED, Credentials, login_of, make_credentials
from tools.k8s.nats_users import users

_NATS, _POSTGRES = "pml-nats:4222", "pml-postgres-rw:5432/pml?sslmode=require"


def manifest(namespace: str, folder: Path) -> dict[str, Any]:
    """Build the list of secrets, and of the config maps that go with them. Raises KeyUnreadable."""
    made = make_credentials(folder)
    every = [
        *(_secret(f"pml-{name}", _of_service(name, made)) for name in SERVICES),
        _secret("pml-nats", {"passwords.conf": made.nats_passwords}),
        _secret("pml-provision", {"nats-url": made.nats_url(OPERATOR, _NATS)}),
        *(
            _secret(f"pml-{name}-migrate", {"postgres-dsn": made.owner_dsn(name, _POSTGRES)})
            for name in STORED
        ),
        *(_user(f"postgres-{name}", name, made) for name in STORED),
        *(_user(f"postgres-{name}-login", login_of(name), made) for name in STORED),
        _secret("pml-qdrant", {"key.yaml": made.qdrant_config}),
        _secret("pml-registry-keys", {"PML_REGISTRY_QDRANT_API_KEY": made.passwords["qdrant"]}),
        _config("pml-trusted-keys", {TRUSTED: made.trusted_keys}),
        _config("pml-nats-users", {"users.conf": users()}),
    ]
    for one in every:
        one["metadata"]["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "List", "items": every}


def _of_service(name: str, made: Credentials) -> dict[str, str]:
    found = {"nats-url": made.nats_url(name, _NATS), "signing.pem": made.signing_key(name)}
    if name in STORED:
        found["postgres-dsn"] = made.postgres_dsn(name, _POSTGRES)
    if name == "gateway":
        found["approver-key-sha256"] = made.approver_key_sha256
    return found


def _user(name: str, user: str, made: Credentials) -> dict[str, Any]:
    secret = _secret(f"pml-{name}", {"username": user, "password": made.passwords[name]})
    return {**secret, "type": "kubernetes.io/basic-auth"}


def _secret(name: str, texts: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": texts}


def _config(name: str, texts: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": texts}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tools.k8s.secrets NAMESPACE FOLDER")
    json.dump(manifest(sys.argv[1], Path(sys.argv[2])), sys.stdout, indent=2)
