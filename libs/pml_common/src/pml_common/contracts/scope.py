"""Scopes: the tenancy of every object."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

ScopeToken = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
"""One part of a scope; safe in a subject token and in a name."""


class Scope(BaseModel):
    """An organisation and one of its projects. No data crosses scopes."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org: ScopeToken
    project: ScopeToken

    def __str__(self) -> str:
        """Print as `org.project`, the head of a fully qualified name."""
        return f"{self.org}.{self.project}"
