"""Starts the registry."""

from pml_common.service import run_service
from pml_registry.app import serve
from pml_registry.settings import RegistrySettings

if __name__ == "__main__":
    run_service("registry", RegistrySettings(), serve)
