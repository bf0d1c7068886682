"""Paths of values within the caller's arguments, defaults left aside."""

from typing import Final

from pml_analysis.names.constants import json_value
from pml_analysis.names.origins import Origins
from pml_analysis.names.values import Constant, FromArguments
from pml_analysis.syntax.patterns import Path
from pml_analysis.syntax.tree import Node

DEFAULTING: Final = frozenset({"??", "||"})
_MAX_NAMES: Final = 10


def parameter_path(origins: Origins, node: Node, names: int = _MAX_NAMES) -> Path | None:
    """Return the path of a value within the caller's arguments, a default for it left aside;
    followed through a bounded number of names."""
    node = node.inner
    origin = origins.of(node)
    if isinstance(origin, FromArguments):
        return origin.path
    binding = origins.scopes.binding(node)
    if binding is not None:
        given = [part for part in binding.parts if not part.is_default]
        if len(given) != 1:
            return None
        value, path = given[0].value, given[0].path
        if path or value is None:
            origin = origins.part(given[0])
            return origin.path if isinstance(origin, FromArguments) else None
        node = value.inner
        if names and origins.scopes.binding(node) is not None:
            return parameter_path(origins, node, names - 1)
    return _defaulted(origins, node)


def _defaulted(origins: Origins, node: Node) -> Path | None:
    """Return the path of `args.x` in `args.x ?? 10`."""
    if node.kind != "binary_expression" or node["operator"].kind not in DEFAULTING:
        return None
    origin = origins.of(node["left"])
    if not isinstance(origin, FromArguments):
        return None
    default = node["right"]
    known = isinstance(origins.of(default), Constant) or json_value(origins, default) is not None
    return origin.path if known else None


def dotted(path: Path) -> str:
    """Format a path for people: `user.name`, `items[0]`, `rows[]`."""
    text = ""
    for step in path:
        if isinstance(step, str):
            text += f".{step}" if text else step
        else:
            text += "[]" if step is None else f"[{step}]"
    return text
