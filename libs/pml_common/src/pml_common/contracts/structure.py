"""Static structure: what a program may do, as a graph (A2-A6)."""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field, JsonValue

from pml_common.contracts.base import Contract


def _is_none(value: object) -> bool:
    """Fields that say nothing are left out of messages, which hold hundreds of them."""
    return value is None


def _is_empty(value: object) -> bool:
    return value == ()


class LiteralArgument(Contract):
    """A value known before the run.

    In a grant one too long to be carried along is told by `sha256`, of its canonical JSON
    (RFC 8785), hex, and `value` is null.
    """

    type: Literal["literal"] = "literal"
    value: JsonValue
    sha256: str | None = Field(default=None, exclude_if=_is_none)


ResultStep = str | int | None
"""One step into a value: a key, an index, or None for any one element of a list."""


class ReferenceArgument(Contract):
    """A value computed in the run; `node_id` is the node that produces it, where one does.

    With `path` it is that part of the node's result, unchanged: a pure reference, which can be
    bound. Without, it is computed. Of a spread (`...options`), `keys` are those that it may set;
    None: any.
    """

    type: Literal["reference"] = "reference"
    expression: str
    node_id: str | None = None
    path: tuple[ResultStep, ...] | None = Field(default=None, exclude_if=_is_none)
    keys: tuple[str, ...] | None = Field(default=None, exclude_if=_is_none)


class ParameterArgument(Contract):
    """A value that the caller hands in: the part of `args` at `path`, unchanged.

    `default` holds the value that the program takes where the caller gives none, if it has one: a
    list of one, since the value itself may be null. Without `path` the value cannot be bound.
    """

    type: Literal["parameter"] = "parameter"
    parameter_name: str
    path: tuple[ResultStep, ...] | None = Field(default=None, exclude_if=_is_none)
    default: tuple[JsonValue, ...] = Field(default=(), exclude_if=_is_empty)


class ObjectArgument(Contract):
    """An object literal of which some field is not a literal."""

    type: Literal["object"] = "object"
    fields: "dict[str, Argument]"


class ArrayArgument(Contract):
    """An array literal of which some item is not a literal."""

    type: Literal["array"] = "array"
    items: "tuple[Argument, ...]"


Argument = Annotated[
    LiteralArgument | ReferenceArgument | ParameterArgument | ObjectArgument | ArrayArgument,
    Field(discriminator="type"),
]


class Position(Contract):
    """A place in the submitted source; line and column count from 1."""

    line: int = Field(ge=1)
    column: int = Field(ge=1)


class SourceNode(Contract):
    """A node with its place in the submitted source; line and column count from 1."""

    id: str
    line: int = Field(ge=1)
    column: int = Field(ge=1)


class TaskNode(SourceNode):
    """One call site of one tool, once for each way its function is invoked.

    `via`: the invocations of local functions that lead there, outermost first. `repeats`: it may
    be reached more than once in a run (loops, callbacks, recursion).
    """

    type: Literal["task"] = "task"
    tool: str
    arguments: dict[str, Argument] = Field(default_factory=dict)
    via: tuple[Position, ...] = ()
    repeats: bool = True


class CapabilityNode(SourceNode):
    """One call site of another capability; `via` and `repeats` as in TaskNode."""

    type: Literal["capability"] = "capability"
    capability_id: str | None = None
    name: str
    arguments: dict[str, Argument] = Field(default_factory=dict)
    via: tuple[Position, ...] = ()
    repeats: bool = True


CallNode = Annotated[TaskNode | CapabilityNode, Field(discriminator="type")]
"""What is called at a node: a tool or a capability."""


class DecisionNode(SourceNode):
    """A condition that chooses a branch."""

    type: Literal["decision"] = "decision"
    condition: str


class ForkNode(SourceNode):
    """Where calls start side by side; `over`: the items of which each makes them, if any."""

    type: Literal["fork"] = "fork"
    kind: Literal["all", "allSettled", "race", "any"] = "all"
    over: str | None = None


class JoinNode(SourceNode):
    """Where calls made side by side meet again."""

    type: Literal["join"] = "join"


class LoopNode(SourceNode):
    """A repeated part: `kind` is the statement, `over` what it runs over."""

    type: Literal["loop"] = "loop"
    kind: str
    over: str


Node = Annotated[
    TaskNode | CapabilityNode | DecisionNode | ForkNode | JoinNode | LoopNode,
    Field(discriminator="type"),
]


EdgeType = Literal["sequence", "conditional", "provides", "contains", "loop_body"]
Coverage = Literal["strict", "partial", "optional"]
"""All that is required, some of it, only what need not be given."""


class FieldMapping(Contract):
    """One output field that feeds one input field."""

    from_field: str
    to_field: str
    type_compatible: bool


class Edge(Contract):
    """A relation between two nodes of one structure.

    `outcome` belongs to `conditional` (`true`, `false`, `case:<label>`, `default`, `ok`, `error`);
    `coverage` and `field_mapping` belong to `provides`. `contains` leads from one capability to
    another that it calls, so it stands in no structure: see `NestedCapability`.
    """

    from_: str = Field(validation_alias=AliasChoices("from", "from_"), serialization_alias="from")
    to: str
    type: EdgeType
    outcome: str | None = None
    coverage: Coverage | None = None
    field_mapping: tuple[FieldMapping, ...] = ()


class StaticStructure(Contract):
    """Nodes in source order and the edges between them."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()


class DynamicCall(Contract):
    """A call whose tool only the run can tell; reported, never dropped."""

    expression: str
    line: int = Field(ge=1)
    column: int = Field(ge=1)


class Diagnostic(Contract):
    """Something wrong or noteworthy in the source; line and column count from 1."""

    severity: Literal["error", "warning"]
    message: str
    line: int = Field(ge=1)
    column: int = Field(ge=1)
    source_line: str | None = None
