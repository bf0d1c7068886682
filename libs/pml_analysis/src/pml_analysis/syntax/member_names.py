"""Names that are no members: of any object, or of `mcp` and its servers."""

from collections.abc import Mapping
from typing import Final

_OTHERS: Final = "it reaches into objects that are not the program's"
_PROTOTYPES: Final = "prototypes are not for programs; use a class, a Map, or Object.create(null)"

REFUSED_KEYS: Final[Mapping[str, str]] = {
    "__defineGetter__": f"{_OTHERS}; write a getter in the object",
    "__defineSetter__": f"{_OTHERS}; write a setter in the object",
    "__lookupGetter__": _OTHERS,
    "__lookupSetter__": _OTHERS,
    "__proto__": _PROTOTYPES,
    "constructor": "through it code can be made from text; compare it (===), or name the class",
    "setPrototypeOf": "prototypes are not for programs; a class sets its own, errors too",
}
"""Members that no program may access, and why."""

LOOKED_UP: Final = frozenset({"then", "toJSON", "toString", "valueOf"})
"""Names that the language itself looks up in every object; no server and no tool is a member of
such a name (LANGUAGE in the sandbox's tools.ts)."""


def is_member(server: str, tool: str) -> bool:
    """Whether a tool can be called as `mcp.<server>.<tool>`; every tool can by its id."""
    return not any(name in LOOKED_UP or name in REFUSED_KEYS for name in (server, tool))


def how_by_id(path: tuple[str, ...]) -> str:
    """Return how to call the tool of this path in `mcp`, or the tools of this server."""
    server, tool = (*path, "<tool>")[:2]
    return f'a tool of such a name is called by its id, mcp.call("{server}:{tool}", {{…}})'
