"""Foreign calls pass: calls of tools in the forms of other hosts.

A client lists a tool as `fs_read`; other hosts have `tools.fs.read`, `codemode.fs_read`,
`callTool("fs", "read", …)`. None of them works here, as a caller's arguments are data: where one
tool alone can be meant, the call becomes one of `mcp.fs.read`. A text that may work is left as it
is.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pml_analysis.names.bindings import Scopes
from pml_analysis.names.globals import FORBIDDEN, GLOBALS
from pml_analysis.names.method_names import DATA_METHODS, TAKING_NO_OBJECT
from pml_analysis.names.origins import BOUND_ROOTS, IMPLICIT_ROOTS, Origins
from pml_analysis.names.renaming import (
    Renamed,
    Renaming,
    is_droppable,
    opening_of,
    parts_of,
    renamed,
    written,
)
from pml_analysis.names.spellings import Spellings, Tool
from pml_analysis.names.values import Constant
from pml_analysis.syntax.edits import Replacement
from pml_analysis.syntax.member_names import LOOKED_UP
from pml_analysis.syntax.node_kinds import MEMBERS
from pml_analysis.syntax.patterns import key_of
from pml_analysis.syntax.tree import Node, Tree

HOSTS: Final = ("codemode", "tools")
"""Names of other hosts for all tools."""

CALLERS: Final = ("callTool", "call_tool")
"""Names of other hosts for the function that calls a tool by its name."""

_MCP: Final = "mcp"
_BY_NAME: Final = "call"
_KNOWN: Final = frozenset(
    {_MCP, "capabilities", *BOUND_ROOTS, *IMPLICIT_ROOTS, *GLOBALS, *FORBIDDEN}
)
_SERVER: Final = frozenset({"server", "serverName", "server_name"})
_NAME: Final = frozenset({"name", "tool", "toolName", "tool_name"})
_GIVEN: Final = frozenset({"args", "arguments", "input", "parameters", "params"})
_FIELDS: Final = {
    **dict.fromkeys(_SERVER, "server"),
    **dict.fromkeys(_NAME, "name"),
    **dict.fromkeys(_GIVEN, "given"),
}


def foreign_calls(
    tree: Tree, scopes: Scopes, origins: Origins, spellings: Spellings
) -> Renamed | None:
    """Replace the foreign calls of a program; None for one without any."""
    return renamed(tree, _Finder(tree, scopes, origins, spellings).renamings())


class _Chain(NamedTuple):
    """A call of a free name or of a part of it: `root.key.key(…)`."""

    call: Node
    root: Node
    keys: tuple[str, ...]
    members: Sequence[Node]


class _ByName(NamedTuple):
    """A call of a tool by constant names; `given` is the expression of its arguments."""

    server: str | None
    name: str
    given: Node | None


@dataclass(frozen=True)
class _Finder:
    tree: Tree
    scopes: Scopes
    origins: Origins
    spellings: Spellings

    def renamings(self) -> Iterator[Renaming]:
        """Yield what is replaced, for each name that begins chains."""
        chains: dict[str, list[_Chain]] = {}
        for call in self.tree.of("call_expression"):
            chain = self._chain(call)
            if chain is not None:
                chains.setdefault(self.tree.name(chain.root), []).append(chain)
        yield from filter(None, map(self._of_mcp, chains.pop(_MCP, ())))
        others = {name: several for name, several in chains.items() if name not in _KNOWN}
        uses = Counter(map(self.tree.name, self.scopes.free if others else ()))
        for name, several in others.items():
            if uses[name] == len(several):
                yield from self._of_another(name, several)

    def _chain(self, call: Node) -> _Chain | None:
        members: list[Node] = []
        keys: list[str] = []
        node = call["function"].inner
        while node.kind in MEMBERS:
            key = self.origins.key(node)
            if not isinstance(key, str) or not is_droppable(self.tree, node.children[-1]):
                return None
            members.append(node)
            keys.append(key)
            node = node.children[0].inner
        if node.kind != "identifier" or self.scopes.binding(node) is not None:
            return None
        return _Chain(call, node, tuple(reversed(keys)), members)

    def _of_mcp(self, chain: _Chain) -> Renaming | None:
        """Replace a call of `mcp` whose tool has another name, or stands under `mcp.tools`."""
        keys, tree = chain.keys, self.tree
        is_nested = keys[:1] == ("tools",) and len(keys) > 1 and not self.spellings.servers("tools")
        if is_nested:
            keys = keys[1:]
        elif self.spellings.has(keys) or not LOOKED_UP.isdisjoint(keys):
            return None
        if chain.call["arguments"].kind != "arguments":
            return None
        if keys == (_BY_NAME,) and not is_nested:
            by_name = self._by_name(chain.call)
            if by_name is None or self._is_called_by_id(chain.call):
                return None
        found = self._resolved(chain.call, keys)
        if found is None and is_nested and len(keys) <= 2:
            first = chain.members[-1]
            edit = Replacement(first.children[0].end, first.end, "")
            return Renaming(written(tree, first), _MCP, (edit,))
        return found

    def _is_called_by_id(self, call: Node) -> bool:
        """Whether it is `mcp.call("server:tool", …)`, which works."""
        text = self._text(call["arguments"].children[0]) or ""
        server, colon, tool = text.partition(":")
        return bool(colon) and (server == "cap" or self.spellings.has((server, tool)))

    def _of_another(self, name: str, chains: Sequence[_Chain]) -> Iterator[Renaming]:
        """Replace the calls of a name that is none here: those of a host's name, and those of all
        others if they all are of a tool."""
        is_hidden = any(binding.name == _MCP for binding in self.scopes.bindings)
        if is_hidden or not all(map(self._is_no_data, chains)):
            return
        is_host = name in HOSTS
        if is_host:
            found = [self._resolved(each.call, each.keys) for each in chains]
        else:
            found = [self._alone(name, each) for each in chains]
        for chain, each in zip(chains, found, strict=True):
            if each is not None and (is_host or None not in found):
                yield each
            elif is_host:
                root = chain.root
                yield Renaming(name, _MCP, (Replacement(root.start, root.end, _MCP),))

    def _is_no_data(self, chain: _Chain) -> bool:
        """Whether a call of a free name, or of a part of it, cannot be one of a method of data."""
        given = chain.call["arguments"]
        if len(chain.keys) > 2 or given.kind != "arguments" or self._is_optional(chain):
            return False
        method = chain.keys[-1] if chain.keys else ""
        is_object = [each.inner.kind for each in given.children] == ["object"]
        return method not in DATA_METHODS or (is_object and method in TAKING_NO_OBJECT)

    def _is_optional(self, chain: _Chain) -> bool:
        between = chain.call["function"].end, chain.call["arguments"].start
        links = (child for each in chain.members for child in each.children)
        is_called_so = "?." in self.tree.source.text[slice(*between)]
        return is_called_so or any(child.kind == "optional_chain" for child in links)

    def _resolved(self, call: Node, keys: tuple[str, ...]) -> Renaming | None:
        """Resolve a call of these names after a host's; None if not exactly one tool fits."""
        match keys:
            case (name,) if name in CALLERS or name == _BY_NAME:
                return self._called_by_name(call)
            case (name,):
                found = opening_of(self.scopes, self.spellings.tools_after_host(name), name)
            case (server, name):
                found = opening_of(self.scopes, self.spellings.tools_of(server, name))
            case _:
                found = None
        return None if found is None else self._renaming(call, found)

    def _alone(self, name: str, chain: _Chain) -> Renaming | None:
        """Resolve a call of a tool without a host's name, or by its name through any client."""
        if len(chain.keys) == 1 and chain.keys[0] in CALLERS:
            return self._called_by_name(chain.call)
        if chain.keys or name in CALLERS:
            return self._resolved(chain.call, (name, *chain.keys))
        found = opening_of(self.scopes, self.spellings.listed(name), name)
        return None if found is None else self._renaming(chain.call, found)

    def _renaming(self, call: Node, found: str) -> Renaming:
        head, first = parts_of(found)
        callee, given = call["function"], call["arguments"]
        edits = [Replacement(callee.start, callee.end, head)]
        if first:
            first = first if given.children else first.removesuffix(", ")
            edits.append(Replacement(given.start + 1, given.start + 1, first))
        return Renaming(written(self.tree, callee), head, tuple(edits))

    def _called_by_name(self, call: Node) -> Renaming | None:
        by_name = self._by_name(call)
        if by_name is None:
            return None
        tools = self._tools(by_name)
        found = opening_of(self.scopes, tools, by_name.name)
        if found is None:
            return None
        head, first = parts_of(found)
        callee, whole, given = call["function"], call["arguments"], by_name.given
        edits = [Replacement(callee.start, callee.end, head)]
        if given is None:
            text = f"({first.removesuffix(', ')})"
            edits.append(Replacement(whole.start, whole.end, text))
        else:
            edits.append(Replacement(whole.start, given.start, f"({first}"))
            edits.append(Replacement(given.end, whole.end, ")"))
        shown = by_name.name if by_name.server is None else f"{by_name.server}:{by_name.name}"
        return Renaming(f'{written(self.tree, callee)}("{shown}", …)', f"{head}(…)", tuple(edits))

    def _tools(self, by_name: _ByName) -> list[Tool]:
        if by_name.server is None:
            return self.spellings.tools(by_name.name)
        return self.spellings.tools_of(by_name.server, by_name.name)

    def _by_name(self, call: Node) -> _ByName | None:
        """Read `f("server:tool", given)`, `f("server", "tool", given)` and `f({ name, arguments
        })`."""
        given = call["arguments"].children if call["arguments"].kind == "arguments" else []
        first = self._text(given[0]) if given else None
        if first is None:
            is_request = len(given) == 1 and given[0].inner.kind == "object"
            return self._request(given[0].inner) if is_request else None
        second = self._text(given[1]) if len(given) > 1 else None
        names, rest = ([first], given[1:]) if second is None else ([first, second], given[2:])
        if len(rest) > 1 or any(each.kind == "spread_element" for each in rest):
            return None
        server = names[0] if len(names) > 1 else None
        return _ByName(server, names[-1], rest[0] if rest else None)

    def _request(self, request: Node) -> _ByName | None:
        fields: dict[str, Node] = {}
        for pair in request.children:
            if pair.kind == "shorthand_property_identifier":
                key, value = self.tree.name(pair), pair
            elif pair.kind == "pair":
                key, value = key_of(self.tree, pair["key"]), pair["value"]
            else:
                return None
            field = _FIELDS.get(str(key))
            if field is None or field in fields:
                return None
            fields[field] = value
        names: Mapping[str, str | None] = {
            field: self._text(fields[field]) for field in ("server", "name") if field in fields
        }
        name = names.get("name")
        if name is None or None in names.values():
            return None
        return _ByName(names.get("server"), name, fields.get("given"))

    def _text(self, node: Node) -> str | None:
        """Return the text that an expression certainly is."""
        origin = self.origins.of(node)
        if not isinstance(origin, Constant) or origin.type != "string":
            return None
        if not is_droppable(self.tree, node):
            return None
        return str(origin.value)
