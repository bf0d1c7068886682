"""Makes the secrets that deploy/compose.yml refers to, as files.

`python -m tools.compose.secrets [FOLDER]`, by default deploy/secrets. Keys and passwords are
generated once into FOLDER/made; a second run writes the same files. The folder is its owner's alone
(0700); the files in it are readable, since a container's user reads those that are mounted into it.
The approver's key is FOLDER/made/approver.key.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from pml_common.contracts.catalog import SERVICES
from pml_local.nats_users import OPERATOR
from tools.credentials import STORED, make_credentials
from tools.k8s.rendering import ROOT

FOLDER = ROOT / "deploy/secrets"
_NATS, _POSTGRES = "nats:4222", "postgres:5432/pml"
_POSTGRES_OWNER, _GRAFANA = "postgres-pml", "grafana-admin"


def approver_key(folder: Path = FOLDER) -> Path:
    """The file of the approver's key."""
    return folder / "made/approver.key"


def make_secrets(folder: Path = FOLDER) -> Mapping[str, str]:
    """Write the files and return their texts by name. Raises KeyUnreadable."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = _files(folder / "made")
    for name, text in files.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.touch(mode=0o644)
            file.write_text(text, encoding="utf-8")
        file.chmod(0o644)
    return files


def _files(made_in: Path) -> dict[str, str]:
    made = make_credentials(made_in, _POSTGRES_OWNER, _GRAFANA)
    return {
        "operator-nats-url": made.nats_url(OPERATOR, _NATS),
        **{f"{name}-nats-url": made.nats_url(name, _NATS) for name in SERVICES},
        **{f"{name}-signing-key": made.signing_key(name) for name in SERVICES},
        **{f"{name}-postgres-dsn": made.postgres_dsn(name, _POSTGRES) for name in STORED},
        **{f"{name}-owner-dsn": made.owner_dsn(name, _POSTGRES) for name in STORED},
        **{f"postgres-{name}": made.passwords[f"postgres-{name}"] for name in STORED},
        **{f"postgres-{name}-login": made.passwords[f"postgres-{name}-login"] for name in STORED},
        **{name: made.passwords[name] for name in (_POSTGRES_OWNER, _GRAFANA)},
        "trusted-keys": made.trusted_keys,
        "approver-key-sha256": made.approver_key_sha256,
        "nats-passwords": made.nats_passwords,
        "qdrant-api-key": made.passwords["qdrant"],
        "qdrant-config.yaml": made.qdrant_config,
    }


if __name__ == "__main__":
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    print(f"{len(make_secrets(into))} secrets in {into}")
