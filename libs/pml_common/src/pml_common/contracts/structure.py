"""Static structure: the possible behaviour of a program as a graph (A2-A6)."""

from typing import Annotated, Final, Literal

from pydantic import AliasChoices, Field, JsonValue

from pml_common.contracts.base import Contract


def _is_none(value: object) -> bool:
    """Exclude unset fields from messages, which hold hundreds of them."""
    return value is None


def _is_empty(value: object) -> bool:
    return value == ()


class LiteralArgument(Contract):
    """A value known before the run.

    In a grant a long value is replaced by `sha256`, the hex digest of its canonical JSON (RFC
    8785), and `value` is null.
    """

    type: Literal["literal"] = "literal"
    value: JsonValue
    sha256: str | None = Field(default=None, exclude_if=_is_none)


ResultStep = str | int | None
"""One step into a value: a key, an index, or None for any one element of a list."""


class ReferenceArgument(Contract):
    """A value computed in the run; `node_id` is the node that produces it, if one does.

    With `path` it is that part of the node's result, unchanged: a pure reference, which can be
    bound. Without, it is computed. For a spread (`...options`), `keys` are those that it may set;
    None: any.
    """

    type: Literal["reference"] = "reference"
    expression: str
    node_id: str | None = None
    path: tuple[ResultStep, ...] | None = Field(default=None, exclude_if=_is_none)
    keys: tuple[str, ...] | None = Field(default=None, exclude_if=_is_none)


class ParameterArgument(Contract):
    """A value from the caller: the part of `args` at `path`, unchanged.

    `default` holds the program's default value, if any: a list of one, since the value itself may
    be null. Without `path` the value cannot be bound.
    """

    type: Literal["parameter"] = "parameter"
    parameter_name: str
    path: tuple[ResultStep, ...] | None = Field(default=None, exclude_if=_is_none)
    default: tuple[JsonValue, ...] = Field(default=(), exclude_if=_is_empty)


class ObjectArgument(Contract):
    """An object literal with a field that is not a literal."""

    type: Literal["object"] = "object"
    fields: "dict[str, Argument]"


class ArrayArgument(Contract):
    """An array literal with an item that is not a literal."""

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
    """One call site of one tool, once for each invocation path of its function.

    `via`: the invocations of local functions that lead to it, outermost first. `repeats`: it may
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
"""A node that calls a tool or a capability."""


class DecisionNode(SourceNode):
    """A condition that chooses a branch."""

    type: Literal["decision"] = "decision"
    condition: str


class ForkNode(SourceNode):
    """The start of concurrent calls; `over`: the items for each of which they are made, if any."""

    type: Literal["fork"] = "fork"
    kind: Literal["all", "allSettled", "race", "any"] = "all"
    over: str | None = None


class JoinNode(SourceNode):
    """The end of concurrent calls."""

    type: Literal["join"] = "join"


class LoopNode(SourceNode):
    """A loop: `kind` is the statement, `over` what it iterates over."""

    type: Literal["loop"] = "loop"
    kind: str
    over: str


Node = Annotated[
    TaskNode | CapabilityNode | DecisionNode | ForkNode | JoinNode | LoopNode,
    Field(discriminator="type"),
]


EdgeType = Literal["sequence", "conditional", "provides", "contains", "loop_body"]
Coverage = Literal["strict", "partial", "optional"]
"""All required fields, some of them, or only optional ones."""


class FieldMapping(Contract):
    """One output field that feeds one input field."""

    from_field: str
    to_field: str
    type_compatible: bool


class Edge(Contract):
    """A relation between two nodes of one structure.

    `outcome` belongs to `conditional` (`true`, `false`, `case:<label>`, `default`, `ok`, `error`);
    `coverage` and `field_mapping` belong to `provides`. `contains` leads from one capability to
    another that it calls, so it is part of no structure: see `NestedCapability`.
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
    """A call whose tool is known only in the run; reported, never dropped."""

    expression: str
    line: int = Field(ge=1)
    column: int = Field(ge=1)


NO_TOOLS: Final = (
    "no tools are connected. Name MCP servers in the mcpServers file that the gateway reads, "
    "in the form that MCP clients use, and start it again."
)
"""End of the message of a diagnostic where no tool of any server is known."""

NO_SERVER: Final = "There is no server"
"""Beginning of the message of a diagnostic that says so; the name in quotes follows."""


class Diagnostic(Contract):
    """An error or warning about the source; line and column count from 1."""

    severity: Literal["error", "warning"]
    message: str
    line: int = Field(ge=1)
    column: int = Field(ge=1)
    source_line: str | None = None
