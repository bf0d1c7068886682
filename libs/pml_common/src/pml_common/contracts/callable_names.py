"""Callable names of capabilities in a program: `fs:read_json` is `capabilities.fs_read_json`."""

import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID

SHORTEST_SUFFIX: Final = 4
"""Hex digits of the id that distinguish two capabilities with one callable name."""

_NO_IDENTIFIER: Final = re.compile(r"[^a-zA-Z0-9_]")
_LEADING_DIGIT: Final = re.compile(r"^(?=[0-9])")


def callable_name(name: str) -> str:
    """Convert a capability's name to an identifier: invalid characters become `_`."""
    return _LEADING_DIGIT.sub("_", _NO_IDENTIFIER.sub("_", name))


def suffixed(name: str, capability_id: UUID, digits: int = SHORTEST_SUFFIX) -> str:
    """Return the callable name with the last digits of the id, which make it unique."""
    return f"{callable_name(name)}_{capability_id.hex[-digits:]}"


def callable_names(capabilities: Sequence[tuple[UUID, str]]) -> dict[str, UUID]:
    """Return one callable name for each id and name, in order: on a collision the first keeps the
    plain name and each later one gets as many digits of its id as needed."""
    found: dict[str, UUID] = {}
    for capability_id, name in capabilities:
        free = (
            n for n in _candidates(capability_id, name) if found.get(n) in (None, capability_id)
        )
        found[next(free)] = capability_id
    return found


def _candidates(capability_id: UUID, name: str) -> list[str]:
    every = range(SHORTEST_SUFFIX, len(capability_id.hex) + 1)
    return [callable_name(name), *(suffixed(name, capability_id, digits) for digits in every)]
