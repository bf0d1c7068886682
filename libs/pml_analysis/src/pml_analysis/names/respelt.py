"""Respelt members pass: parts of `mcp` under names that differ from a tool's in spelling.

Calls of `mcp.fs.readFile` itself are foreign calls; here are the tools and servers that a program
keeps under names of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pml_analysis.names.origins import Origins
from pml_analysis.names.renaming import Renamed, Renaming, is_droppable, renamed, written
from pml_analysis.names.spellings import Spellings
from pml_analysis.names.values import FromTools
from pml_analysis.syntax.edits import Replacement
from pml_analysis.syntax.member_names import LOOKED_UP
from pml_analysis.syntax.node_kinds import MEMBERS, WRAPPERS
from pml_analysis.syntax.patterns import key_of
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.typing.declarations import is_called_by_id, member
from pml_analysis.typing.type_text import key as as_key


def respelt(tree: Tree, origins: Origins, spellings: Spellings) -> Renamed | None:
    """Replace the names of tools and servers that are others here; None where all are known."""
    finder = _Finder(tree, origins, spellings)
    return renamed(tree, [*finder.members(), *finder.patterns()])


@dataclass(frozen=True)
class _Finder:
    tree: Tree
    origins: Origins
    spellings: Spellings

    def members(self) -> Iterator[Renaming]:
        """Yield the members of `mcp` and of its servers that are to be replaced."""
        for node in self.tree.of(*MEMBERS):
            inside = node.children[0]
            origin = self.origins.of(inside)
            if not isinstance(origin, FromTools) or node.index in self.origins.changed_members:
                continue
            read = (*origin.path, self.origins.key(node))
            path = None if self.spellings.has(read) else self._path(read, _is_opened(node))
            if path is None or not is_droppable(self.tree, node.children[-1]):
                continue
            text, start = "".join(map(member, path)), inside.end
            if any(child.kind == "optional_chain" for child in node.children):
                text = f"?{text}" if text.startswith(".") else f"?.{text}"
            server = self.spellings.servers(origin.path[0])[:1] if origin.path else []
            meant = "mcp" + "".join(map(member, (*server, *path)))
            yield Renaming(written(self.tree, node), meant, (Replacement(start, node.end, text),))

    def patterns(self) -> Iterator[Renaming]:
        """Yield the keys of destructuring patterns that are to be replaced."""
        for node in self.tree.of("variable_declarator", "assignment_expression"):
            is_declared = node.kind == "variable_declarator"
            pattern = node["name" if is_declared else "left"].inner
            value = node.child("value" if is_declared else "right")
            origin = self.origins.of(value) if value is not None else None
            if pattern.kind == "object_pattern" and isinstance(origin, FromTools):
                yield from self._keys(pattern, origin.path)

    def _keys(self, pattern: Node, above: tuple[str, ...]) -> Iterator[Renaming]:
        for child in pattern.children:
            if child.kind == "pair_pattern":
                name, target = child.children
                is_opened = target.inner.kind == "object_pattern"
                key = key_of(self.tree, name)
                path = self._path((*above, key), is_opened)
                if path is not None and len(path) == 1 and name.kind != "computed_property_name":
                    yield self._key(name, path, Replacement(name.start, name.end, as_key(path[0])))
                if is_opened and not above and isinstance(key, str):
                    yield from self._keys(target.inner, (path[0] if path else key,))
            elif child.kind == "shorthand_property_identifier_pattern":
                yield from self._shorthand(child, child, above)
            elif child.kind == "object_assignment_pattern":
                yield from self._shorthand(child.children[0], child, above)

    def _shorthand(self, name: Node, whole: Node, above: tuple[str, ...]) -> Iterator[Renaming]:
        path = self._path((*above, self.tree.name(name)), False)
        if path is None:
            return
        before = "".join(f"{as_key(each)}: {{ " for each in path[:-1]) + f"{as_key(path[-1])}: "
        after = " }" * (len(path) - 1)
        yield self._key(
            name,
            path,
            Replacement(name.start, name.start, before),
            Replacement(whole.end, whole.end, after),
        )

    def _key(self, name: Node, path: tuple[str, ...], *edits: Replacement) -> Renaming:
        return Renaming(written(self.tree, name), ".".join(path), edits)

    def _path(self, path: tuple[str | int | None, ...], is_opened: bool) -> tuple[str, ...] | None:
        """Return the names to write for the last one of a path in `mcp`; None where they are the
        same, or more than one thing is meant."""
        match path:
            case (*_, str(name)) if name in LOOKED_UP:
                return None
            case (str(server), str(tool)):
                servers = self.spellings.servers(server)
                found = self.spellings.tools_of(server, tool) if len(servers) == 1 else []
                is_other = len(found) == 1 and found[0][1] != tool
                return found[0][1:] if is_other and not is_called_by_id(*found[0]) else None
            case (str(name),) if name != "call" and not self.spellings.has((name,)):
                tools = [] if is_opened else self.spellings.tools_after_host(name)
                servers = self.spellings.servers(name)
                if len(tools) + len(servers) != 1 or any(is_called_by_id(*tool) for tool in tools):
                    return None
                return tools[0] if tools else (servers[0],)
            case _:
                return None


def _is_opened(node: Node) -> bool:
    """Whether parts of a member are read where it stands."""
    while node.above.kind in WRAPPERS:
        node = node.above
    above = node.above
    if above.kind == "variable_declarator":
        return above["name"].kind == "object_pattern"
    return above.kind in MEMBERS and above.children[0] is node
