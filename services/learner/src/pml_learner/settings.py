"""The learner's settings."""

from pydantic import Field

from pml_common.service import StorageSettings


class LearnerSettings(StorageSettings):
    """Settings common to services with storage, and how long traces are kept."""

    learner_trace_days: float = Field(
        default=90.0,
        ge=7,  # as long as a run's end may be delivered again
        description="Days for which a run's traces are kept; what was learned from them stays.",
    )
