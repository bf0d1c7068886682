"""References to capabilities: a name, in a scope or not, a fully qualified name, or an id; with
a selector of a version.

    fs:read_json                          in the caller's scope, or what it may see beyond it
    cap:fs:read_json@v1                   as programs write it
    cap:acme.webapp:fs:read_json          in that scope
    acme.webapp.fs.read_json.a7f3@2       the fully qualified name of a record
    unnamed_5d1c, 6f1d2f0e-…              a provisional name, an id

`str` of what a parser here returns is the text that it was given, but for the prefix `cap:` where
nothing depends on it.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Final
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from pml_common.contracts.display_names import BadName, DisplayName, parse_display_name
from pml_common.contracts.scope import Scope, ScopeToken

PREFIX: Final = "cap:"
UNNAMED: Final = "unnamed_"

_SCOPE_TOKEN: Final[TypeAdapter[str]] = TypeAdapter(ScopeToken)
_HASH: Final = re.compile(r"[0-9a-f]{4,32}")
_UNNAMED: Final = re.compile(r"unnamed_[0-9a-f]{4,64}")
_TAG: Final = re.compile(r"v(0|[1-9]\d{0,8})(?:\.(0|[1-9]\d{0,8})(?:\.(0|[1-9]\d{0,8}))?)?")
_NUMBER: Final = re.compile(r"[1-9]\d{0,8}")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_FQDN_PARTS: Final = 5
_SELECTORS: Final = "@latest, @3 (its number), @v1 or @v1.2.0 (its tag), @2025-12-22 (its day)"


@dataclass(frozen=True)
class Latest:
    """The newest version."""

    def __str__(self) -> str:
        return "latest"


@dataclass(frozen=True)
class Number:
    """The version with this number."""

    number: int

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True)
class Tag:
    """The version with this tag, `v1.2.0`; of `v1` and `v1.2` the highest with this beginning."""

    parts: tuple[int, ...]

    def __str__(self) -> str:
        return "v" + ".".join(map(str, self.parts))


@dataclass(frozen=True)
class Day:
    """The newest version of this day, in UTC, or before."""

    day: date

    def __str__(self) -> str:
        return self.day.isoformat()


Selector = Latest | Number | Tag | Day


@dataclass(frozen=True)
class Fqdn:
    """The fully qualified name of a record: `<org>.<project>.<namespace>.<action>.<hash>`."""

    scope: Scope
    name: DisplayName
    hash: str

    def __str__(self) -> str:
        return f"{self.scope}.{self.name.namespace}.{self.name.action}.{self.hash}"


@dataclass(frozen=True)
class ScopedName:
    """A name in a scope of its own: `cap:acme.webapp:fs:read_json`."""

    scope: Scope
    name: DisplayName

    def __str__(self) -> str:
        return f"{PREFIX}{self.scope}:{self.name}"


@dataclass(frozen=True)
class Unnamed:
    """A provisional name: `unnamed_<hash of the code>`."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Reference:
    """A target, and which version of it."""

    target: DisplayName | ScopedName | Fqdn | Unnamed | UUID
    selector: Selector = Latest()

    def __str__(self) -> str:
        return f"{self.target}" if self.selector == Latest() else f"{self.target}@{self.selector}"


def parse_reference(text: str) -> Reference:
    """Parse a reference. Raises BadName."""
    target, at, selector = text.strip().partition("@")
    return Reference(_target(target), parse_selector(selector) if at else Latest())


def parse_selector(text: str) -> Selector:
    """Parse a selector, without its `@`. Raises BadName."""
    if text == "latest":
        return Latest()
    if _NUMBER.fullmatch(text):
        return Number(int(text))
    if _TAG.fullmatch(text):
        return Tag(tuple(map(int, text[1:].split("."))))
    if _DAY.fullmatch(text):
        try:
            return Day(date.fromisoformat(text))
        except ValueError:
            raise BadName(f"@{text} is no day of the calendar") from None
    raise BadName(f"@{text} selects no version: allowed are {_SELECTORS}")


def parse_fqdn(text: str) -> Fqdn:
    """Parse a fully qualified name. Raises BadName."""
    parts = text.split(".")
    if len(parts) != _FQDN_PARTS:
        raise BadName(
            f"{text!r} has {len(parts)} parts between dots, not {_FQDN_PARTS}: "
            "<org>.<project>.<namespace>.<action>.<hash>"
        )
    org, project, namespace, action, digits = parts
    name = parse_display_name(f"{namespace}:{action}")
    if _HASH.fullmatch(digits) is None:
        raise BadName(f"the hash {digits!r} is not 4 to 32 hexadecimal digits, as a7f3")
    return Fqdn(_scope(org, project), name, digits)


def _target(text: str) -> DisplayName | ScopedName | Fqdn | Unnamed | UUID:
    bare = text.removeprefix(PREFIX)
    try:
        return UUID(bare) if len(bare) == len(str(UUID(int=0))) else _named(bare)
    except BadName:
        raise
    except ValueError:
        return _named(bare)


def _named(text: str) -> DisplayName | ScopedName | Fqdn | Unnamed:
    if _UNNAMED.fullmatch(text):
        return Unnamed(text)
    if "." not in text:
        return parse_display_name(text)
    if ":" not in text:
        return parse_fqdn(text)
    place, _, name = text.partition(":")
    org, dot, project = place.partition(".")
    if not dot or "." in project:
        raise BadName(f"{place!r} is no scope: <org>.<project>, as in cap:acme.webapp:fs:read_json")
    return ScopedName(_scope(org, project), parse_display_name(name))


def _scope(org: str, project: str) -> Scope:
    for part, token in (("organisation", org), ("project", project)):
        try:
            _SCOPE_TOKEN.validate_python(token)
        except ValidationError:
            raise BadName(
                f"the {part} {token!r} is not valid: lower-case letters (a to z), digits, hyphens "
                "and underscores, at most 63, beginning with a letter or digit"
            ) from None
    return Scope(org=org, project=project)
