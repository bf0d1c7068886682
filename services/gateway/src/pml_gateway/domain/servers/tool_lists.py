"""Lists of the tools of a server that are offered, and of those that are not."""

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import cast


@dataclass(frozen=True)
class ToolLists:
    """Patterns of tools' names (`*`, `?`, `[…]`): those to offer, None for all, and those not to,
    which win."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()

    def offers(self, tool: str) -> bool:
        """Whether a tool of this name is offered."""
        return (self.allow is None or _matches(tool, self.allow)) and not _matches(tool, self.deny)

    def without_tool(self, tools: Collection[str]) -> tuple[str, ...]:
        """Return the patterns that none of these tools matches: most likely slips."""
        patterns = (*(self.allow or ()), *self.deny)
        return tuple(
            pattern
            for pattern in dict.fromkeys(patterns)
            if not any(fnmatchcase(tool, pattern) for tool in tools)
        )


def as_tool_lists(given: object) -> object:
    """Read `tools` of an entry: a list of patterns to offer, or an object with `allow` and `deny`.
    Raises ValueError."""
    if isinstance(given, dict):
        found = cast(dict[str, object], given)
        if found and set(found) <= {"allow", "deny"}:
            allow = _patterns(found["allow"]) if "allow" in found else None
            return ToolLists(allow, _patterns(found.get("deny", [])))
    elif isinstance(given, list):
        return ToolLists(_patterns(cast(object, given)))
    raise ValueError('must be a list of names, or an object with "allow" and "deny"')


def _patterns(given: object) -> tuple[str, ...]:
    found = cast(list[object], given) if isinstance(given, list) else [None]
    if not all(isinstance(pattern, str) for pattern in found):
        raise ValueError("must be a list of names or patterns of tools, as read_*")
    return tuple(map(str, found))


def _matches(tool: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)
