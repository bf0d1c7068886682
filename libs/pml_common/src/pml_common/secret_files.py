"""Secrets as files: one per variable, named like it, in the folder `PML_SECRETS_DIR`."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic_settings import BaseSettings, SecretsSettingsSource

FOLDER = "PML_SECRETS_DIR"


def secrets_folder() -> Path | None:
    """Return the folder, if one is configured. Raises ValueError where there is none."""
    named = os.environ.get(FOLDER)
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise ValueError(f"{FOLDER}={named} is no folder: mount the secrets there, or unset it")
    return folder


def secrets_source(settings: type[BaseSettings]) -> tuple[SecretsSettingsSource, ...]:
    """Return the source of settings in files, if any; surrounding white space does not count."""
    folder = secrets_folder()
    return () if folder is None else (SecretsSettingsSource(settings, secrets_dir=folder),)


def secret_variables() -> Mapping[str, str]:
    """Read all files, for what is addressed by the name of a variable. Raises ValueError."""
    folder = secrets_folder()
    if folder is None:
        return {}
    files = (entry for entry in sorted(folder.iterdir()) if entry.is_file())
    return {entry.name: entry.read_text(encoding="utf-8").strip() for entry in files}
