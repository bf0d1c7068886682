"""Offers of MCP servers beside tools: resources, templates of such, and prompts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pml_common.contracts.tool import JsonObject


@dataclass(frozen=True)
class Offers:
    """One server's, as MCP lists them. Unless `prefixed`, prompts are listed under their own
    names."""

    resources: tuple[JsonObject, ...] = ()
    templates: tuple[JsonObject, ...] = ()
    prompts: tuple[JsonObject, ...] = ()
    prefixed: bool = True


def distinct(
    listed: Sequence[JsonObject], key: str
) -> tuple[tuple[JsonObject, ...], Sequence[str]]:
    """Return the items whose `key` no other has, and for each other value why it is left out."""
    times = Counter(str(item[key]) for item in listed)
    faults = [
        f"{value}: listed {count} times, so none of them is used"
        for value, count in times.items()
        if count > 1
    ]
    return tuple(item for item in listed if times[str(item[key])] == 1), faults
