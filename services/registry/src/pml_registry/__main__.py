"""Starts the registry; `migrate` as argument: applies its migrations and ends."""

import sys

from pml_common.service import run_migrations, run_service
from pml_common.settings_at_start import read_settings
from pml_registry.app import serve
from pml_registry.settings import RegistrySettings

if __name__ == "__main__":
    settings = read_settings("registry", RegistrySettings)
    if sys.argv[1:] == ["migrate"]:
        run_migrations("registry", settings)
    else:
        run_service("registry", settings, serve)
