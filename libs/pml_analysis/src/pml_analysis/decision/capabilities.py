"""Capabilities that programs call, and those that these call in turn, down to the maximum depth."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final
from uuid import UUID

from pml_analysis.decision.toolbox import Toolbox, as_tool, did_you_mean, quoted
from pml_analysis.structure.calls import CallSite
from pml_analysis.syntax.edits import Edited
from pml_analysis.text.problems import Problem
from pml_common.contracts.callable_names import callable_name, callable_names
from pml_common.contracts.capability import CapabilityDescription, NestedCapability
from pml_common.contracts.decision import Policy
from pml_common.contracts.structure import CallNode, CapabilityNode, Node, TaskNode
from pml_common.contracts.tool import ToolDefinition

MAX_DEPTH: Final = 3
"""Maximum depth of nested capability calls; deeper ones are refused at run time."""

MAX_CAPABILITIES: Final = 50
"""Maximum number of capabilities that one program may reach."""

_NOTHING: Final = Edited("", ())

_REFERENCE: Final = re.compile(r"[A-Za-z0-9_.:@-]{1,256}")


@dataclass(frozen=True)
class Capability:
    """A capability and the calls of its program: tools as (server, name), capabilities as it names
    them, and expressions known only at run time; `nodes` are these calls, as in its structure,
    `runs` is its program as it runs but for its `lists`, `fault` is why it cannot be called."""

    about: CapabilityDescription
    tools: tuple[tuple[str, str], ...] = ()
    references: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()
    nodes: tuple[TaskNode | CapabilityNode, ...] = ()
    runs: Edited = _NOTHING
    lists: tuple[tuple[str, ...], ...] = ()
    fault: str | None = None

    @property
    def id(self) -> UUID:
        """The capability's id."""
        return self.about.capability_id

    @property
    def name(self) -> str:
        """The current name."""
        return self.about.name


@dataclass(frozen=True)
class CapabilityUse:
    """One capability and the nodes that call it, in source order; at least one."""

    capability: Capability
    nodes: Sequence[CapabilityNode]


@dataclass(frozen=True)
class Reached:
    """A capability that calls lead to; `chain` are the names from the one that the program calls at
    `nodes` to this one, both included."""

    capability: Capability
    chain: tuple[str, ...]
    nodes: Sequence[CapabilityNode] = ()


def is_valid_reference(reference: str) -> bool:
    """Whether a capability can have such a name."""
    return _REFERENCE.fullmatch(reference) is not None


class Library:
    """Capabilities by the names that programs call them by; `near` are suggestions for an unknown
    name, `refused` says of names why what they mean must not run, `notices` what is to be changed
    where they are called."""

    def __init__(
        self,
        found: Mapping[str, Capability] | None = None,
        near: Mapping[str, Sequence[str]] | None = None,
        refused: Mapping[str, str] | None = None,
        notices: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._found = dict(found or {})
        self._near = dict(near or {})
        self._refused = dict(refused or {})
        self._notices = dict(notices or {})

    @classmethod
    def of(cls, capabilities: Sequence[Capability]) -> "Library":
        """Index capabilities under all their names: present names before former ones; of equal
        names the first wins."""
        known = {capability.id: capability for capability in capabilities}
        plain = callable_names([(one.id, one.name) for one in capabilities])
        found = {one.name: one for one in reversed(capabilities)}
        found |= {name: known[capability_id] for name, capability_id in plain.items()}
        found |= {str(one.id): one for one in capabilities}
        for one in capabilities:
            for alias in one.about.aliases:
                found.setdefault(alias, one)
                found.setdefault(callable_name(alias), one)
        return cls(found)

    @property
    def definitions(self) -> dict[str, ToolDefinition]:
        """Each capability as the tool definition that its callers see, by the name they call it
        by."""
        return {reference: as_tool(one.about) for reference, one in self._found.items()}

    def described(self) -> dict[str, CapabilityDescription]:
        """Return each capability by the name that its callers call it by."""
        return {reference: one.about for reference, one in self._found.items()}

    def unknown(self, sites: Iterable[CallSite]) -> tuple[str, ...]:
        """Return the capabilities that sites name and the library lacks, each once."""
        named = (site.capability for site in sites if site.capability is not None)
        return tuple(dict.fromkeys(name for name in named if name not in self._found))

    def problems(self, sites: Iterable[CallSite]) -> Iterator[Problem]:
        """Yield a problem for every site whose capability cannot be called, whatever the tools."""
        found = {capability.id for capability in self._found.values()}
        too_many = (
            f"More than {MAX_CAPABILITIES} capabilities are reached from here: that is too many to "
            "approve."
        )
        for site in sites:
            if site.capability is None:
                continue
            why = too_many if len(found) > MAX_CAPABILITIES else self._fault(site.capability)
            if why is not None:
                yield Problem(site.callee.start, why)

    def warnings(self, sites: Iterable[CallSite]) -> Iterator[Problem]:
        """Yield what should be changed where sites call capabilities, by a former name or in a
        yanked version."""
        for site in sites:
            for notice in self._notices.get(site.capability or "", ()):
                yield Problem(site.callee.start, f"Capability {notice}.")

    def missing_tools_of(self, sites: Iterable[CallSite], toolbox: Toolbox) -> Iterator[Problem]:
        """Yield a problem for every site whose capability needs a missing tool."""
        for site in sites:
            capability = self._found.get(site.capability or "")
            why = None if capability is None else self._missing_tool(capability, toolbox)
            if why is not None:
                yield Problem(site.callee.start, why)

    def resolved(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Return nodes whose capabilities have their id and their current name, from nodes named as
        in the program and without problems."""
        return tuple(
            self._resolved(node) if isinstance(node, CapabilityNode) else node for node in nodes
        )

    def _known(self, node: TaskNode | CapabilityNode, toolbox: Toolbox) -> CallNode:
        """Resolve the node of a capability; one beyond the maximum depth stays unknown."""
        keyed = toolbox.with_keys(node)
        if isinstance(keyed, CapabilityNode) and keyed.name in self._found:
            return self._resolved(keyed)
        return keyed

    def _resolved(self, node: CapabilityNode) -> CapabilityNode:
        called = self._found[node.name]
        return node.model_copy(update={"capability_id": str(called.id), "name": called.name})

    def uses(self, nodes: Iterable[Node]) -> list[CapabilityUse]:
        """Return the capabilities that resolved nodes call, in the order of their first call."""
        found: dict[str | None, list[CapabilityNode]] = {}
        for node in nodes:
            if isinstance(node, CapabilityNode):
                found.setdefault(node.capability_id, []).append(node)
        called = {str(capability.id): capability for capability in self._found.values()}
        return [CapabilityUse(called[str(key)], several) for key, several in found.items()]

    def reached(self, uses: Iterable[CapabilityUse]) -> tuple[Reached, ...]:
        """Return the capabilities that each use leads to, itself first, the nearest before the
        farther."""
        return tuple(
            Reached(one.capability, one.chain, use.nodes)
            for use in uses
            for one in self._from(use.capability)
        )

    def nested(
        self, reached: Iterable[Reached], policy: Policy, toolbox: Toolbox
    ) -> tuple[NestedCapability, ...]:
        """Return each capability once, with the hashes that bind it to the decision."""
        uses: dict[UUID, list[Reached]] = {}
        for one in reached:
            uses.setdefault(one.capability.id, []).append(one)
        return tuple(self._nested(several, policy, toolbox) for several in uses.values())

    def _nested(
        self, uses: Sequence[Reached], policy: Policy, toolbox: Toolbox
    ) -> NestedCapability:
        capability = uses[0].capability
        verdict, reason = policy.verdict_on_capability(names_of(capability))
        called = (self._found.get(reference) for reference in capability.references)
        return NestedCapability(
            capability_id=capability.id,
            name=capability.name,
            code_hash=capability.about.code_hash,
            verdict=verdict,
            reason=reason,
            called_as=tuple(n for n, one in self._found.items() if one.id == capability.id),
            node_ids=tuple(dict.fromkeys(node.id for use in uses for node in use.nodes)),
            calls=tuple(dict.fromkeys(one.id for one in called if one is not None)),
            nodes=tuple(self._known(node, toolbox) for node in capability.nodes),
        )

    def _from(self, capability: Capability) -> Iterator[Reached]:
        """Yield a capability and all that it leads to, each once, by the shortest chain."""
        seen = {capability.id}
        level = [Reached(capability, (capability.name,))]
        for depth in range(1, MAX_DEPTH + 1):
            yield from level
            below: list[Reached] = []
            for one in level if depth < MAX_DEPTH else ():
                for called in map(self._found.get, one.capability.references):
                    if called is not None and called.id not in seen:
                        seen.add(called.id)
                        below.append(Reached(called, (*one.chain, called.name)))
            level = below

    def _fault(self, reference: str) -> str | None:
        capability = self._found.get(reference)
        if reference in self._refused:
            return f"Capability {reference} cannot be called: {self._refused[reference]}"
        if capability is None:
            near = self._near.get(reference) or self._alike(reference)
            return f"There is no capability {quoted(reference)}. {did_you_mean(near)}".rstrip()
        for one in self._from(capability):
            if one.capability.fault is not None:
                return f"{_through(one.chain)} cannot be called: {one.capability.fault}"
            deeper = one.capability.references if len(one.chain) < MAX_DEPTH else ()
            for name in deeper:
                if name in self._refused:
                    why = self._refused[name]
                    return f"{_through(one.chain)} calls {name}, which cannot be called: {why}"
                if name not in self._found:
                    return f"{_through(one.chain)} calls {quoted(name)}, which is no capability."
        return None

    def _alike(self, reference: str) -> Sequence[str]:
        """Return names similar to an unknown one, of its own form."""
        known = [name for name in self._found if (":" in name) == (":" in reference)]
        return get_close_matches(reference, known) if is_valid_reference(reference) else ()

    def _missing_tool(self, capability: Capability, toolbox: Toolbox) -> str | None:
        for one in self._from(capability):
            for server, tool in one.capability.tools:
                if toolbox.find(server, tool) is None:
                    what = f"{_through(one.chain)} calls {quoted(f'{server}:{tool}')}"
                    return f"{what}. {toolbox.explain(server, tool)}"
        return None


def names_of(capability: Capability) -> tuple[str, ...]:
    """Return the capability's name and its former ones."""
    return (capability.name, *capability.about.aliases)


def _through(chain: Sequence[str]) -> str:
    """Format `Capability a:b`, `Capability a:b, called by c:d,`."""
    last, *before = reversed(chain)
    way = "".join(f", called by {name}" for name in before)
    return f"Capability {last}{way}{',' if before else ''}"
