"""The registry's settings."""

from pml_common.service import StorageSettings


class RegistrySettings(StorageSettings):
    """Settings common to services with storage."""
