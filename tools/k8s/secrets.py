"""Makes the secrets that deploy/k8s refers to.

`python -m tools.k8s.secrets NAMESPACE FOLDER` prints them as one manifest for `kubectl apply -f -`.
Keys and passwords are generated once into FOLDER (0700), and the approver's key beside them; a
second run prints the same. Where a vault holds your secrets, this shows which there have to be.
"""

import hashlib
import json
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pml_common.contracts.catalog import SERVICES
from pml_local.keys import TRUSTED, make_keys
from pml_local.nats_users import OPERATOR
from tools.k8s.nats_users import users

STORED = ("gateway", "learner", "registry")
"""The services with a role in Postgres."""
_NATS, _POSTGRES = "pml-nats:4222", "pml-postgres-rw:5432/pml?sslmode=require"
_NEEDED = (
    *(f"nats-{name}" for name in (*SERVICES, OPERATOR)),
    *(f"postgres-{name}" for name in STORED),
    "qdrant",
    "approver",
)


def manifest(namespace: str, folder: Path) -> dict[str, Any]:
    """Build the list of secrets, and of the config maps that go with them. Raises KeyUnreadable."""
    make_keys(folder, SERVICES)
    known = _passwords(folder)
    every = [
        *(_secret(f"pml-{name}", _of_service(name, folder, known)) for name in SERVICES),
        _secret("pml-nats", {"passwords.conf": _nats_passwords(known)}),
        *(_role(name, known[f"postgres-{name}"]) for name in STORED),
        _secret("pml-qdrant", {"key.yaml": json.dumps({"service": {"api_key": known["qdrant"]}})}),
        _secret("pml-registry-keys", {"PML_REGISTRY_QDRANT_API_KEY": known["qdrant"]}),
        _config("pml-trusted-keys", {TRUSTED: (folder / TRUSTED).read_text(encoding="utf-8")}),
        _config("pml-nats-users", {"users.conf": users()}),
    ]
    for one in every:
        one["metadata"]["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "List", "items": every}


def _of_service(name: str, folder: Path, known: Mapping[str, str]) -> dict[str, str]:
    found = {
        "nats-url": f"nats://{name}:{known[f'nats-{name}']}@{_NATS}",
        "signing.pem": (folder / f"{name}.pem").read_text(encoding="utf-8"),
    }
    if name in STORED:
        found["postgres-dsn"] = f"postgresql://{name}:{known[f'postgres-{name}']}@{_POSTGRES}"
    if name == "gateway":
        found["approver-key-sha256"] = hashlib.sha256(known["approver"].encode()).hexdigest()
    return found


def _nats_passwords(known: Mapping[str, str]) -> str:
    names = (*SERVICES, OPERATOR)
    return "".join(
        f'PML_NATS_PASSWORD_{each.upper()} = "{known[f"nats-{each}"]}"\n' for each in names
    )


def _role(name: str, password: str) -> dict[str, Any]:
    role = _secret(f"pml-postgres-{name}", {"username": name, "password": password})
    return {**role, "type": "kubernetes.io/basic-auth"}


def _passwords(folder: Path) -> dict[str, str]:
    """Read the passwords, and generate those that are missing."""
    file = folder / "passwords.json"
    known: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    made = {name: known.get(name) or f"p{secrets.token_hex(24)}" for name in _NEEDED}
    if made != known:
        _write_privately(file, json.dumps(made, indent=2))
    _write_privately(folder / "approver.key", made["approver"])
    return made


def _write_privately(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text, encoding="utf-8")


def _secret(name: str, texts: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": texts}


def _config(name: str, texts: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": texts}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tools.k8s.secrets NAMESPACE FOLDER")
    json.dump(manifest(sys.argv[1], Path(sys.argv[2])), sys.stdout, indent=2)
