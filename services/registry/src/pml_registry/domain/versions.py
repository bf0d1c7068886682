"""Versions of a record, and which of them a selector means."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import assert_never

from pml_common.contracts.capability import Health
from pml_common.contracts.references import Day, Latest, Number, Selector, Tag

_WHOLE = 3
"""Numbers in a whole tag."""
_SHOWN = 10


@dataclass(frozen=True)
class Version:
    """One version; `number` counts from 1, `tag` is a whole one (`v1.2.0`) and on one version of a
    record only. `yanked` is the reason not to use it any more, `health` that of its behaviour,
    `description` what it is for."""

    number: int
    created_at: datetime
    tag: Tag | None = None
    yanked: str | None = None
    health: Health = "unproven"
    description: str = ""


@dataclass(frozen=True)
class Selected:
    """The version that a selector means; `warning` if it is yanked, and named exactly."""

    version: Version
    warning: str | None = None


class NoVersion(Exception):
    """No version is meant; says which there are."""


def select(versions: Sequence[Version], selector: Selector) -> Selected:
    """Return the version that is meant. Raises NoVersion.

    A yanked version is meant only where it is named exactly: by its number or whole tag, or by
    `@vN` where no tag begins with N.
    """
    match selector:
        case Latest():
            return _newest(versions, versions, selector)
        case Day():
            then = [
                one for one in versions if one.created_at.astimezone(UTC).date() <= selector.day
            ]
            return _newest(then, versions, selector)
        case Number():
            return _exact(
                (one for one in versions if one.number == selector.number), versions, selector
            )
        case Tag():
            return _tagged(versions, selector)
        case _:
            assert_never(selector)


def _tagged(versions: Sequence[Version], wanted: Tag) -> Selected:
    if len(wanted.parts) == _WHOLE:
        return _exact((one for one in versions if one.tag == wanted), versions, wanted)
    beginning = [one for one in versions if one.tag and _begins(one.tag, wanted)]
    if beginning:
        usable = [one for one in beginning if one.yanked is None]
        if usable:
            return Selected(max(usable, key=lambda one: one.tag.parts if one.tag else ()))
        raise NoVersion(f"@{wanted}: every version with such a tag is yanked; {_those(versions)}")
    if len(wanted.parts) == 1:
        number = wanted.parts[0]
        return _exact((one for one in versions if one.number == number), versions, wanted)
    raise NoVersion(f"@{wanted}: no version has such a tag; {_those(versions)}")


def _begins(tag: Tag, wanted: Tag) -> bool:
    return tag.parts[: len(wanted.parts)] == wanted.parts


def _newest(among: Iterable[Version], versions: Sequence[Version], selector: Selector) -> Selected:
    usable = [one for one in among if one.yanked is None]
    if not usable:
        raise NoVersion(f"@{selector}: no version that is not yanked; {_those(versions)}")
    return Selected(max(usable, key=lambda one: one.number))


def _exact(among: Iterable[Version], versions: Sequence[Version], selector: Selector) -> Selected:
    found = next(iter(among), None)
    if found is None:
        raise NoVersion(f"@{selector}: no such version; {_those(versions)}")
    if found.yanked is None:
        return Selected(found)
    return Selected(found, f"version {found.number} is yanked: {found.yanked}")


def _those(versions: Sequence[Version]) -> str:
    """Say which versions there are, the newest first."""
    ordered = sorted(versions, key=lambda one: -one.number)
    shown = [
        f"{one.number}{f' ({one.tag})' if one.tag else ''}{', yanked' if one.yanked else ''}"
        for one in ordered[:_SHOWN]
    ]
    more = f" and {len(ordered) - _SHOWN} before" if len(ordered) > _SHOWN else ""
    return f"there are: {'; '.join(shown)}{more}" if shown else "there is none"
