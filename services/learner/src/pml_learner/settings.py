"""The learner's settings."""

from pml_common.service import StorageSettings


class LearnerSettings(StorageSettings):
    """Settings common to services with storage."""
