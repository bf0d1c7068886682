"""What the learner is told by its environment."""

from pml_common.service import StorageSettings


class LearnerSettings(StorageSettings):
    """Nothing of its own so far."""
