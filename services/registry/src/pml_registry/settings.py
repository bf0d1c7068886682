"""What the registry is told by its environment."""

from pml_common.service import StorageSettings


class RegistrySettings(StorageSettings):
    """Nothing of its own so far."""
