"""Runs a service with the interpreter that a file names: `python launch.py SERVICE FILE`. Where it
names a file with the password of Postgres's owner, too, applies the service's migrations first."""

import os
import subprocess
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
        owners = {"PML_POSTGRES_DSN": parts._replace(netloc=place).geturl()}
        migrate = (python, "-m", f"pml_{service}", "migrate")
        subprocess.run(migrate, env={**os.environ, **owners}, check=True)
    os.execv(python, (python, "-m", f"pml_{service}"))  # noqa: S606 - keeps the supervised pid
