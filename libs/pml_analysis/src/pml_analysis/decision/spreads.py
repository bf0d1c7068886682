"""Spreads: which keys of a call's arguments may be set by values known only at run time."""

from collections.abc import Mapping
from typing import Final

from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    ObjectArgument,
    ReferenceArgument,
)
from pml_common.provides.json_schema import Described

SPREAD: Final = "..."
"""Prefix of the key of an argument passed as a whole, `f(options)` is `f({...options})`, and of a
value under a computed key, `...[key]`."""


def with_keys(given: Mapping[str, Argument], inputs: Described) -> dict[str, Argument]:
    """Return arguments whose spreads list the keys they may set: the inputs in the tool's schema,
    less those written after the spread. Any key where the schema lists none."""
    found: dict[str, Argument] = {}
    after: set[str] = set()
    known = tuple(inputs.properties)
    for key, argument in reversed(list(given.items())):
        if not key.startswith(SPREAD):
            after.add(key)
            found[key] = _inside(argument, inputs.at((key,)))
        elif isinstance(argument, ReferenceArgument) and argument.keys is None and known:
            left = tuple(name for name in known if name not in after)
            found[key] = argument.model_copy(update={"keys": left})
        else:
            found[key] = argument
    return dict(reversed(list(found.items())))


def _inside(argument: Argument, inputs: Described) -> Argument:
    match argument:
        case ObjectArgument(fields=fields):
            return ObjectArgument(fields=with_keys(fields, inputs))
        case ArrayArgument(items=items):
            return ArrayArgument(items=tuple(_inside(item, inputs.items) for item in items))
        case _:
            return argument
