"""The learner's settings."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import Field, field_validator

from pml_common.contracts.scope import Scope
from pml_common.service import StorageSettings
from pml_learner.domain.large_results import INLINE_BYTES
from pml_learner.domain.retention import Retention

_LEAST_DAYS = 7
"""The time for which a run's end may be delivered again."""

Days = Annotated[float, Field(ge=_LEAST_DAYS)]


class LearnerSettings(StorageSettings):
    """Settings common to services with storage, and how long traces are kept."""

    learner_trace_days: Days = Field(
        default=90.0,
        description="Days for which a run's traces are kept; what was learned from them stays.",
    )
    learner_trace_days_of: dict[str, Days] = Field(
        default_factory=dict[str, Days],
        description='The same for single scopes, as JSON: {"acme.webapp": 30}.',
    )

    learner_inline_result_bytes: int = Field(
        default=INLINE_BYTES,
        ge=0,
        description="Bytes of the JSON of a result that a trace keeps; a larger one stands with "
        "its workflow alone.",
    )

    learner_replay_per_minute: int = Field(
        default=600,
        ge=0,
        description="Traces whose priority is refreshed in a minute, while no runs come; 0: none.",
    )

    @field_validator("learner_trace_days_of")
    @classmethod
    def _scopes(cls, days: Mapping[str, float]) -> Mapping[str, float]:
        for name in days:
            scope_named(name)
        return days

    @property
    def retention(self) -> Retention:
        """The time for which each scope's traces are kept."""
        of_scopes = {
            scope_named(name): timedelta(days=days)
            for name, days in self.learner_trace_days_of.items()
        }
        return Retention(timedelta(days=self.learner_trace_days), of_scopes)


def scope_named(name: str) -> Scope:
    """Parse `org.project`. Raises ValueError."""
    org, dot, project = name.partition(".")
    if not dot:
        raise ValueError(f"{name!r} is no scope: write org.project")
    return Scope(org=org, project=project)
