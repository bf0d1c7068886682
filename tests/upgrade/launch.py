"""Runs a service with the interpreter that a file names: `python launch.py SERVICE FILE`. Where it
names a file with the owner's password, too, the service logs in at Postgres as the owner."""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

if __name__ == "__main__":
    service, file = sys.argv[1:]
    python, *secret = Path(file).read_text(encoding="utf-8").splitlines()
    dsn = os.environ.get("PML_POSTGRES_DSN")
    if secret and dsn:
        parts, password = urlsplit(dsn), Path(secret[0]).read_text(encoding="utf-8")
        place = f"pml:{password}@{parts.hostname}:{parts.port}"
        os.environ["PML_POSTGRES_DSN"] = parts._replace(netloc=place).geturl()
    os.execv(python, (python, "-m", f"pml_{service}"))  # noqa: S606 - keeps the supervised pid
