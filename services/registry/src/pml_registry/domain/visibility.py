"""Sight of records."""

from dataclasses import dataclass
from typing import Literal

from pml_common.contracts.capability import Visibility
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


def sees(viewer: Viewer, scope: Scope, visibility: Visibility, owner: str) -> bool:
    """Whether the viewer sees a record of `scope`."""
    place = place_of(viewer, scope)
    if place == "project":
        is_own = viewer.principal is None or viewer.principal == owner
        return visibility != "private" or is_own or viewer.is_admin
    return visibility == "public" or (visibility == "org" and place == "org")
