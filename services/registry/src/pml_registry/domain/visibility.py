"""Sight of records."""

from dataclasses import dataclass
from typing import Literal

from pml_common.contracts.scope import Scope

Place = Literal["project", "org", "public"]
"""The place of a record: in the viewer's project, another of its organisation, or another's."""


@dataclass(frozen=True)
class Viewer:
    """The one who asks. Without a principal it is a service, for itself, and sees all of its
    scope."""

    scope: Scope
    principal: str | None = None
    is_admin: bool = False


def place_of(viewer: Viewer, scope: Scope) -> Place:
    """Return where a record of `scope` is for the viewer."""
    if scope == viewer.scope:
        return "project"
    return "org" if scope.org == viewer.scope.org else "public"
