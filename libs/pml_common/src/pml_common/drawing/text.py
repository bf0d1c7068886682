"""Texts of a drawing: each on one line, printable, and of limited length.

Text from a program or a server may be long or contain invisible characters.
"""

import json
from collections.abc import Mapping
from typing import Final, assert_never

from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    DecisionNode,
    FieldMapping,
    ForkNode,
    JoinNode,
    LiteralArgument,
    LoopNode,
    Node,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    StaticStructure,
    TaskNode,
)
from pml_common.text.short import short

_DEEPEST: Final = 4
_MOST_MAPPINGS: Final = 3
_JOINED: Final = {
    "all": "when all are done",
    "allSettled": "when each has ended",
    "race": "when the first has ended",
    "any": "when the first has succeeded",
}


def argument_text(argument: Argument, limit: int = 40) -> str:
    """Render a value as JSON, a parameter as `<name>`, a reference as its expression and, after an
    arrow, its source node. Parts are cut at `limit`, the whole at three times as much."""
    return short(_argument(argument, limit, _DEEPEST), 3 * limit)


def _argument(argument: Argument, limit: int, deep: int) -> str:
    match argument:
        case LiteralArgument():
            return short(json.dumps(argument.value, ensure_ascii=False), limit)
        case ParameterArgument():
            return f"<{short(argument.parameter_name, limit)}>"
        case ReferenceArgument():
            source = f" ← {short(argument.node_id, limit)}" if argument.node_id else ""
            return f"{short(argument.expression, limit)}{source}"
        case ObjectArgument(fields=fields):
            named = (f"{name}: {_argument(fields[name], limit, deep - 1)}" for name in fields)
            return f"{{{', '.join(named) if deep else '…'}}}"
        case ArrayArgument(items=items):
            listed = (_argument(item, limit, deep - 1) for item in items)
            return f"[{', '.join(listed) if deep else '…'}]"
        case _:
            assert_never(argument)


def arguments_of(node: Node) -> Mapping[str, Argument]:
    """Return the arguments of a call; empty for other nodes."""
    return node.arguments if isinstance(node, TaskNode | CapabilityNode) else {}


def is_try(node: Node) -> bool:
    """Return whether a decision stands for a try; `try` cannot be a condition in a program."""
    return isinstance(node, DecisionNode) and node.condition == "try"


class Captions:
    """Short descriptions of nodes, in the context of their structure."""

    def __init__(self, structure: StaticStructure) -> None:
        self._switches = {
            edge.from_
            for edge in structure.edges
            if edge.outcome is not None
            and (edge.outcome == "default" or edge.outcome.startswith("case:"))
        }
        self._forks = {node.id[1:]: node for node in structure.nodes if isinstance(node, ForkNode)}

    def of(self, node: Node, limit: int = 60) -> str:
        """Return a node's caption, without id, position and arguments."""
        match node:
            case TaskNode():
                return short(node.tool, limit)
            case CapabilityNode():
                return f"capability {short(node.name, limit)}"
            case DecisionNode():
                return self._decision(node, limit)
            case LoopNode():
                return f"{short(node.kind, limit)} {short(node.over, limit)}"
            case ForkNode():
                over = "" if node.over is None else f" over {short(node.over, limit)}"
                return f"side by side: Promise.{node.kind}{over}"
            case JoinNode():
                fork = self._forks.get(node.id[1:])
                return _JOINED["all" if fork is None else fork.kind]
            case _:
                assert_never(node)

    def _decision(self, node: DecisionNode, limit: int) -> str:
        if is_try(node):
            return "try"
        word = "switch" if node.id in self._switches else "if"
        return f"{word} {short(node.condition, limit)}"


def mapping_text(mappings: tuple[FieldMapping, ...], limit: int = 40) -> str:
    """Render field mappings: `content → json, size → limit (types differ)`."""
    shown = [
        f"{short(one.from_field, limit)} → {short(one.to_field, limit)}"
        f"{'' if one.type_compatible else ' (types differ)'}"
        for one in mappings[:_MOST_MAPPINGS]
    ]
    more = len(mappings) - len(shown)
    return ", ".join([*shown, f"{more} more"] if more else shown)
