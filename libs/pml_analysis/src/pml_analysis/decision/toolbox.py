"""The scope's tools, and the messages for missing ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Final, NamedTuple, overload

from pml_analysis.decision.spreads import with_keys
from pml_analysis.names.foreign_calls import CALLERS
from pml_analysis.names.spellings import Spellings
from pml_analysis.structure.calls import CAPABILITY_SERVER, CallSite, OneName
from pml_analysis.text.confusables import confusable_character, imitated_name
from pml_analysis.text.problems import Problem
from pml_analysis.typing.declarations import member, opening
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.decision import Policy
from pml_common.contracts.structure import NO_SERVER, NO_TOOLS, CapabilityNode, Node, TaskNode
from pml_common.contracts.tool import QuarantinedTool, ToolDefinition
from pml_common.provides.json_schema import ANYTHING, Described, described

_MAX_NAME: Final = 100
_MAX_NAMES: Final = 8
_MAX_WAYS: Final = 5
_BY_NAME: Final = (
    'write mcp.<server>.<tool>(…), or mcp.call("<server>:<tool>", …) where the name is computed'
)


class ToolSignature(NamedTuple):
    """A tool's inputs and outputs."""

    inputs: Described
    outputs: Described

    @classmethod
    def of(cls, tool: ToolDefinition) -> "ToolSignature":
        """Read the tool's schemas."""
        return cls(described(tool.input_schema), described(tool.output_schema))


class Tools(Sequence[ToolDefinition]):
    """Tools, grouped by server, with `by_server` to find them by name, and those in quarantine,
    which cannot be called. Build it once per catalog:
    with hundreds of tools that takes a good part of a short program's analysis."""

    def __init__(
        self, tools: Iterable[ToolDefinition], quarantined: Iterable[QuarantinedTool] = ()
    ) -> None:
        self.by_server: dict[str, dict[str, ToolDefinition]] = {}
        for tool in tools:
            self.by_server.setdefault(tool.server, {})[tool.name] = tool
        self._all = [tool for known in self.by_server.values() for tool in known.values()]
        self.quarantined = {(tool.server, tool.name): tool for tool in quarantined}
        self._hashes: dict[tuple[str, str], str] = {}
        self._signatures: dict[tuple[str, str], ToolSignature] = {}

    @cached_property
    def spellings(self) -> Spellings:
        """The names that may mean these tools, or one in quarantine, which no other replaces."""
        names = {server: dict.fromkeys(known) for server, known in self.by_server.items()}
        for server, name in self.quarantined:
            names.setdefault(server, {})[name] = None
        return Spellings(names)

    def hash_of(self, tool: ToolDefinition) -> str:
        """Return the definition hash of one of these tools, computed on first use."""
        key = (tool.server, tool.name)
        known = self._hashes.get(key)
        if known is None:
            known = self._hashes[key] = tool.definition_hash
        return known

    def signature(self, server: str, name: str) -> ToolSignature:
        """Return the inputs and outputs of one of these tools, read on first use."""
        known = self._signatures.get((server, name))
        if known is None:
            known = self._signatures[server, name] = ToolSignature.of(self.by_server[server][name])
        return known

    @classmethod
    def of(cls, tools: Sequence[ToolDefinition]) -> "Tools":
        """Wrap tools; return them unchanged if they already are such an object."""
        return tools if isinstance(tools, Tools) else cls(tools)

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> ToolDefinition: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ToolDefinition]: ...
    def __getitem__(self, index: int | slice) -> ToolDefinition | Sequence[ToolDefinition]:
        return self._all[index]

    def __iter__(self) -> Iterator[ToolDefinition]:
        return iter(self._all)


class Toolbox:
    """Everything that a program may call: `tools`, and `capabilities`, called like tools by their
    names in the program."""

    def __init__(
        self,
        tools: Sequence[ToolDefinition],
        capabilities: Mapping[str, ToolDefinition] | None = None,
    ) -> None:
        self.tools = Tools.of(tools)
        self._servers = self.tools.by_server
        self._capabilities = capabilities or {}

    def __contains__(self, site: CallSite) -> bool:
        return site.tool in self._servers.get(site.server, {})

    def __getitem__(self, site: CallSite) -> ToolDefinition:
        """Return the tool that a site calls; the site must be neither missing nor a capability."""
        return self._servers[site.server][site.tool]

    def signature(self, site: CallSite) -> ToolSignature:
        """Return the inputs and outputs of the target of a site that is not missing."""
        if site.capability is not None:
            return ToolSignature.of(self._capabilities[site.capability])
        return self.tools.signature(site.server, site.tool)

    def keyed(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Return nodes whose spreads list the keys they may set."""
        return tuple(
            self.with_keys(node) if isinstance(node, TaskNode | CapabilityNode) else node
            for node in nodes
        )

    def with_keys(self, call: TaskNode | CapabilityNode) -> TaskNode | CapabilityNode:
        """Return a node, named as in the program, whose spreads list the keys they may set."""
        inputs = self._inputs(call)
        return call.model_copy(update={"arguments": with_keys(call.arguments, inputs)})

    def _inputs(self, call: TaskNode | CapabilityNode) -> Described:
        """Return the inputs of a node's target; any where they are unknown."""
        if isinstance(call, CapabilityNode):
            found = self._capabilities.get(call.name)
            return ANYTHING if found is None else ToolSignature.of(found).inputs
        server, _, name = call.tool.partition(":")
        known = self.find(server, name)
        return ANYTHING if known is None else self.tools.signature(server, name).inputs

    def find(self, server: str, tool: str) -> ToolDefinition | None:
        """Find a tool by server and name."""
        return self._servers.get(server, {}).get(tool)

    def offered(self, policy: Policy) -> dict[str, list[str]]:
        """Return the names of the tools that the policy does not deny, by server: those that
        clients are shown."""
        found: dict[str, list[str]] = {}
        for tool in self.tools:
            if policy.verdict_on(tool)[0] != "deny":
                found.setdefault(tool.server, []).append(tool.name)
        return found

    def missing(self, sites: Sequence[CallSite]) -> Iterator[Problem]:
        """Yield a problem for every site whose tool is missing; each name is explained once."""
        explained: dict[tuple[str, str], str] = {}
        for site in sites:
            if site.capability is None and site not in self:
                name = (site.server, site.tool)
                if name not in explained:
                    explained[name] = self.explain(*name)
                yield Problem(site.callee.start, explained[name])

    def servers_called(self, calls: Sequence[OneName]) -> Iterator[Problem]:
        """Yield a problem for every call of a server."""
        return (each.problem for each in calls if each.name in self._servers)

    def unknown_names(self, calls: Sequence[OneName]) -> Iterator[Problem]:
        """Yield a problem for every call by one name that is no server, with the form that
        works."""
        for each in calls:
            if each.name not in self._servers:
                yield Problem(each.problem.offset, self._explain_name(each))

    def _explain_name(self, call: OneName) -> str:
        name = call.name[:_MAX_NAME]
        meant = self.tools.spellings.tools(name)
        if meant:
            return f"{name} is no tool: {self._meant(meant)}."
        if name in CALLERS:
            return f"{name} is no function of mcp: {_BY_NAME}."
        if not self._servers:
            return f"{name} cannot be called: {NO_TOOLS}"
        joint = {f"{tool.server}_{tool.name}": (tool.server, tool.name) for tool in self.tools}
        near = [joint[each] for each in get_close_matches(name, joint, n=3)]
        hint = f"Did you mean {_ways(near)}?" if near else f"Connected: {_listed(self._servers)}."
        is_text = call.problem.message.startswith("mcp.call")
        return f"{call.problem.message if is_text else _no_tool(name)} {hint}"

    def explain(self, server: str, tool: str) -> str:
        """Explain why a tool is missing, with suggestions."""
        if (held := self.tools.quarantined.get((server, tool))) is not None:
            return f"{held.explanation}."
        shown = f"{server}:{tool}"[:_MAX_NAME]
        if not self._servers:
            return f"{shown} cannot be called: {NO_TOOLS}"
        known = self._servers.get(server)
        if known is None:
            near = self._same_tool_elsewhere(tool) + self._alike(server, tool)
            hint = did_you_mean(near) or f"Connected: {_listed(self._servers)}."
            return f"{NO_SERVER} {quoted(server)}{_confusable(server)}. {hint}"
        meant = self.tools.spellings.tools_of(server, tool)
        if meant:
            return f"{quoted(server)} has no tool {quoted(tool)}: {self._meant(meant)}."
        near = [f"{server}:{name}" for name in _close(tool, known)]
        hint = did_you_mean(near + self._same_tool_elsewhere(tool)) or (
            f"It has: {_listed(known)}."
        )
        return f"{quoted(server)} has no tool {quoted(tool)}{_confusable(tool)}. {hint}"

    def _meant(self, meant: Sequence[tuple[str, str]]) -> str:
        offered = [tool for tool in meant if tool not in self.tools.quarantined]
        held = self.tools.quarantined.get(meant[0])
        return held.explanation if held is not None and not offered else f"write {_ways(offered)}"

    def _same_tool_elsewhere(self, tool: str) -> list[str]:
        return [f"{server}:{tool}" for server, known in self._servers.items() if tool in known]

    def _alike(self, server: str, tool: str) -> list[str]:
        """Return tools of servers with a similar name, and those servers themselves."""
        found: list[str] = []
        for near in _close(server, self._servers):
            tools = _close(tool, self._servers[near])
            found += [f"{near}:{name}" for name in tools[:1]] or [near]
        return found


def _ways(tools: Sequence[tuple[str, str]]) -> str:
    """List calls of tools as a program writes them."""
    ways = [f"{opening(*tool)}…)" for tool in tools[:_MAX_WAYS]]
    more = f", or {len(tools) - _MAX_WAYS} more" if len(tools) > _MAX_WAYS else ""
    return " or ".join(ways) + more


def _no_tool(name: str) -> str:
    return f"mcp{member(name)} is no tool: call mcp.<server>.<tool>(…)."


def _close(name: str, known: Mapping[str, object]) -> list[str]:
    seen = imitated_name(name)
    if seen is not None and seen in known:
        return [seen]
    return get_close_matches(name[:_MAX_NAME], known, n=3)


def _confusable(name: str) -> str:
    return f": it has {confusable_character(name)}" if imitated_name(name) is not None else ""


def quoted(name: str) -> str:
    """Quote a name for a message."""
    return f'"{name[:_MAX_NAME]}"'


def did_you_mean(near: Sequence[str]) -> str:
    """Format a question from the first few distinct names; empty without any."""
    names = list(dict.fromkeys(near))[:3]
    return f"Did you mean {' or '.join(names)}?" if names else ""


def _listed(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _MAX_NAMES} more" if len(found) > _MAX_NAMES else ""
    return ", ".join(found[:_MAX_NAMES]) + more


def as_tool(about: CapabilityDescription) -> ToolDefinition:
    """Return a capability as the tool definition that its callers see."""
    return ToolDefinition(
        server=CAPABILITY_SERVER,
        name=about.name,
        description=about.description,
        input_schema=about.parameters_schema,
    )
