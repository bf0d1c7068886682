"""Changes of records, as pure functions of what stands."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple, assert_never
from uuid import UUID

from pml_common.contracts.capability import Visibility
from pml_common.contracts.display_names import BadName, parse_display_name
from pml_common.contracts.dns import (
    MAX_LABELS,
    LabelRecord,
    RecordChange,
    Rename,
    SetVisibility,
    TagVersion,
    Transfer,
    Unyank,
    Yank,
)
from pml_common.contracts.references import Latest, Number, Selector, Tag, parse_selector
from pml_common.contracts.tool import JsonObject
from pml_registry.domain.versions import NoVersion, Version, select
from pml_registry.domain.visibility import Viewer


@dataclass(frozen=True)
class Describe:
    """Say what the version that the reference selects is for."""

    description: str


OwnChange = Describe | Rename | TagVersion | LabelRecord | Yank | Unyank | SetVisibility | Transfer
"""A change of one record; a fork makes another."""

RefusalCode = Literal["not_found", "invalid", "conflict"]


@dataclass(frozen=True)
class RecordState:
    """The part of a record that changes. `names` are all it has had, the present one last;
    `behaviours` are those of its versions, which are in the order of their numbers, from 1."""

    record_id: UUID
    names: tuple[str, ...]
    owner: str
    visibility: Visibility
    tags: tuple[str, ...]
    versions: tuple[Version, ...]
    behaviours: tuple[UUID, ...]
    latest: int

    @property
    def name(self) -> str:
        """The present name."""
        return self.names[-1]


class FoundAs(NamedTuple):
    """The parts of a version that other changes may change, of those it is found by."""

    behaviour: UUID
    name: str
    description: str


@dataclass(frozen=True)
class Effect:
    """A record after a change, and what its history says: which version is concerned, and how."""

    state: RecordState
    change: RecordChange
    version: int
    details: JsonObject = field(default_factory=JsonObject)

    @property
    def describes(self) -> bool:
        """Whether a version is described in other words."""
        return describes(self.details)

    @property
    def found_as(self) -> FoundAs:
        """Parts of what the version concerned is found by after the change."""
        at = self.version - 1
        version = self.state.versions[at]
        return FoundAs(self.state.behaviours[at], self.state.name, version.description)


@dataclass(frozen=True)
class Refused:
    """The change cannot be made; says why, and what to do."""

    code: RefusalCode
    why: str


@dataclass(frozen=True)
class StoredChange:
    """A change in a record's history; `sequence` counts from 1. `key_id` and `signed_at`: by which
    key the version is signed, and since when."""

    sequence: int
    change: RecordChange
    principal: str
    at: datetime
    version: int
    tag: Tag | None = None
    details: JsonObject = field(default_factory=JsonObject)
    key_id: str | None = None
    signed_at: datetime | None = None


def change(
    state: RecordState, wanted: OwnChange, selector: Selector, by: Viewer, holder: str | None
) -> Effect | Refused | None:
    """Change a record; None where it is so already. `holder` says whose the wanted name is, if
    another record or a reservation has it or one with the same callable name."""
    why_not = not_theirs(state.name, state.owner, by)
    if why_not is not None:
        return Refused("conflict", why_not)
    match wanted:
        case Rename():
            return _rename(state, wanted, holder)
        case LabelRecord():
            return _label(state, wanted)
        case SetVisibility():
            after = replace(state, visibility=wanted.visibility)
            details: JsonObject = {"from": state.visibility, "to": wanted.visibility}
            return _unless_equal(state, Effect(after, "published", state.latest, details))
        case Transfer():
            after = replace(state, owner=wanted.owner)
            details = {"from": state.owner, "to": wanted.owner}
            return _unless_equal(state, Effect(after, "transferred", state.latest, details))
        case Describe() | TagVersion() | Yank() | Unyank():
            return _of_version(state, wanted, selector)
        case _:
            assert_never(wanted)


def describes(details: JsonObject) -> bool:
    """Say whether these are details of a version that was described in other words."""
    return "description" in details


def not_theirs(name: str, owner: str, by: Viewer) -> str | None:
    """Say why somebody may not change a record of their scope, if so."""
    if by.is_admin or by.principal == owner:
        return None
    return (
        f"{name} belongs to {owner}: only its owner or an admin changes it; "
        "fork it to have one of your own"
    )


def latest_of(versions: Sequence[Version]) -> int:
    """Return the number of the version that is meant where none is asked for: the newest that is
    not yanked, or the newest if all are."""
    usable = [version for version in versions if version.yanked is None]
    return max(version.number for version in usable or versions)


def _rename(state: RecordState, wanted: Rename, holder: str | None) -> Effect | Refused | None:
    try:
        name = str(parse_display_name(wanted.name))
    except BadName as error:
        return Refused("invalid", str(error))
    if name == state.name:
        return None
    if holder is not None:
        return Refused("conflict", f"{holder}: choose another name")
    names = (*(each for each in state.names if each != name), name)
    details: JsonObject = {"from": state.name, "to": name}
    return Effect(replace(state, names=names), "renamed", state.latest, details)


def _label(state: RecordState, wanted: LabelRecord) -> Effect | Refused | None:
    tags = tuple(sorted({*state.tags, *wanted.add} - {*wanted.remove}))
    if len(tags) > MAX_LABELS:
        return Refused(
            "invalid", f"{state.name} would have {len(tags)} tags, of at most {MAX_LABELS}"
        )
    details: JsonObject = {
        "added": [*sorted({*tags} - {*state.tags})],
        "removed": [*sorted({*state.tags} - {*tags})],
    }
    after = replace(state, tags=tags)
    return _unless_equal(state, Effect(after, "labelled", state.latest, details))


def _of_version(
    state: RecordState, wanted: Describe | TagVersion | Yank | Unyank, selector: Selector
) -> Effect | Refused | None:
    try:
        # The latest version is always there, even where every one is yanked.
        chosen = Number(state.latest) if isinstance(selector, Latest) else selector
        version = select(state.versions, chosen).version
    except NoVersion as error:
        return Refused("not_found", f"{state.name}{error}")
    match wanted:
        case Describe():
            return _unless_equal(state, _describe(state, version, wanted.description.strip()))
        case TagVersion():
            return _unless_equal(state, _tag(state, wanted, version))
        case Yank():
            return _unless_equal(state, _yank(state, version, wanted.reason))
        case Unyank():
            return _unless_equal(state, _yank(state, version, None))
        case _:
            assert_never(wanted)


def _describe(state: RecordState, version: Version, description: str) -> Effect:
    versions = tuple(
        replace(each, description=description) if each.number == version.number else each
        for each in state.versions
    )
    details: JsonObject = {"description": description, "before": version.description}
    return Effect(replace(state, versions=versions), "labelled", version.number, details)


def _tag(state: RecordState, wanted: TagVersion, version: Version) -> Effect:
    tag = parse_selector(wanted.version_tag)
    tag = tag if isinstance(tag, Tag) else None
    moved_from = [each.number for each in state.versions if each.tag == tag]
    versions = tuple(
        replace(each, tag=tag)
        if each.number == version.number
        else replace(each, tag=None)
        if each.tag == tag
        else each
        for each in state.versions
    )
    details: JsonObject = {
        "version_tag": str(tag),
        "replaced": None if version.tag is None else str(version.tag),
        "moved_from": next(iter(moved_from), None),
    }
    return Effect(replace(state, versions=versions), "tagged", version.number, details)


def _yank(state: RecordState, version: Version, reason: str | None) -> Effect:
    versions = tuple(
        replace(each, yanked=reason) if each.number == version.number else each
        for each in state.versions
    )
    after = replace(state, versions=versions, latest=latest_of(versions))
    details: JsonObject = {"reason": reason if reason is not None else version.yanked}
    done: RecordChange = "yanked" if reason is not None else "unyanked"
    return Effect(after, done, version.number, details)


def _unless_equal(before: RecordState, effect: Effect) -> Effect | None:
    return None if effect.state == before else effect
