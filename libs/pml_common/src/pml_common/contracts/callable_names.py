"""What capabilities are called under `capabilities` in a program: `fs:read_json` is
`capabilities.fs_read_json` (B4)."""

import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID

SHORTEST_SUFFIX: Final = 4
"""Hex digits of the id that tell two capabilities of one callable name apart."""

_NO_IDENTIFIER: Final = re.compile(r"[^a-zA-Z0-9_]")
_LEADING_DIGIT: Final = re.compile(r"^(?=[0-9])")


def callable_name(name: str) -> str:
    """A capability's name as an identifier: what cannot stand in one becomes `_`."""
    return _LEADING_DIGIT.sub("_", _NO_IDENTIFIER.sub("_", name))


def suffixed(name: str, capability_id: UUID, digits: int = SHORTEST_SUFFIX) -> str:
    """The callable name with the last digits of the id, which names one capability for sure."""
    return f"{callable_name(name)}_{capability_id.hex[-digits:]}"


def callable_names(capabilities: Sequence[tuple[UUID, str]]) -> dict[str, UUID]:
    """One callable name for each id and name, those first named first: where two collide, the
    first keeps the plain name and each later one gets as many digits of its id as it takes."""
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
