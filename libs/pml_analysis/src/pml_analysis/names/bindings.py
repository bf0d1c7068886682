"""Results of the scopes pass: bindings, and the binding of each identifier."""

from dataclasses import dataclass, field
from typing import Literal

from pml_analysis.syntax.patterns import Part, Target
from pml_analysis.syntax.tree import Node

BindingKind = Literal["var", "let", "const", "function", "parameter", "class", "other"]


@dataclass(slots=True, eq=False)
class Binding:
    """A declared name. `parts` are all the values that are ever assigned to it."""

    name: str
    kind: BindingKind
    node: Node
    parts: list[Part] = field(default_factory=list[Part])
    uses: list[Node] = field(default_factory=list[Node])
    starts_absent: bool = False


@dataclass(frozen=True)
class Scopes:
    """The bindings of all identifiers.

    `free` are the uses that nothing in the program declares, `free_writes` those among them that
    write; `written` are the indexes of all identifiers that are written, `member_writes` the
    targets of assignments to parts of objects; `top` is the outermost scope.
    """

    bindings: list[Binding]
    free: list[Node]
    free_writes: list[Node]
    written: set[int]
    member_writes: list[Target]
    redeclared: list[Node]
    top: dict[str, Binding]
    by_identifier: dict[int, Binding]

    def binding(self, identifier: Node) -> Binding | None:
        """Return the binding that an identifier declares, reads or writes; None when it is free."""
        return self.by_identifier.get(identifier.index)
