"""Comparison of a call with its approval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from pml_common.binding.canonical import sha256_of
from pml_common.binding.patterns import (
    ABSENT,
    AnyOf,
    Computed,
    Digested,
    Fields,
    FromResult,
    Items,
    Known,
    Outcomes,
    Pattern,
    Value,
    parts,
)
from pml_common.binding.resolve import Resolver, field_of
from pml_common.contracts.decision import PolicyRule
from pml_common.contracts.grant import Grant
from pml_common.contracts.json_values import same_json
from pml_common.contracts.tool import JsonObject


@dataclass(frozen=True)
class ActualCall:
    """A tool call with the arguments that the run passes."""

    node_id: str
    occurrence: int
    tool: str
    args: JsonObject
    args_hash: str


class Binding:
    """The calls that one grant allows, given the arguments of the run's caller."""

    def __init__(self, grant: Grant, args: JsonObject) -> None:
        self._grant = grant
        self._bound = frozenset(grant.bound)
        self._nodes = Resolver(grant.nodes, args)
        self._calls = {
            (one.node_id, one.occurrence, one.tool, one.args_hash): one.definition_hash
            for one in grant.calls
        }
        self._rest = {(one.node_id, one.tool): one.definition_hash for one in grant.rest}

    def definition_hash(self, call: ActualCall) -> str | None:
        """Return the definition hash under which the tool was granted, at least to this call."""
        granted = self._grant.tools.get(call.tool)
        return granted if granted is not None else self._allowed_later(call)

    def is_approved(self, call: ActualCall) -> bool:
        """Return whether a person approved the tool: with the whole program, or at this call."""
        whole = call.tool in self._bound and self._grant.approved_by is not None
        return whole or self._allowed_later(call) is not None

    def mismatch(
        self, call: ActualCall, outcomes: Outcomes, *, beside_mocks: bool = False
    ) -> str | None:
        """Return why a call differs from what was approved; None if it does not. `beside_mocks`:
        results of mocks are unknown here, so arguments from a node without results match."""
        tool = call.tool
        if self._allowed_later(call) is not None:
            return None
        if tool not in self._grant.tools:
            return f"{tool} was not seen when the program was analysed"
        node = self._nodes.node(call.node_id)
        if self._is_free(call) and not (node is not None and node.source):
            return None
        if node is None or node.tool != tool:
            return f"this call of {tool} was not seen when the program was analysed"
        if call.occurrence > 0 and not node.repeats:
            return f"this call of {tool} was to be made once, and this is another one"
        computed_parks = self._grant.computed_parks
        fit = _Fit(outcomes, computed_parks=computed_parks, beside_mocks=beside_mocks)
        faults = list(fit.faults(node.arguments, call.args))
        return None if not faults else f"{tool} is called with other arguments: {faults[0]}"

    def is_source(self, call: ActualCall) -> bool:
        """Return whether bound arguments of other nodes are parts of this node's results."""
        node = self._nodes.node(call.node_id)
        return node is not None and node.source

    def _is_free(self, call: ActualCall) -> bool:
        """Return whether the call may have any arguments."""
        standing = self._grant.standing
        return call.tool not in self._bound or _allowed(standing, call.tool, call.args)

    def _allowed_later(self, call: ActualCall) -> str | None:
        """Return the definition hash under which a person allowed this call, or all further calls
        of its node, while the run was parked."""
        very = self._calls.get((call.node_id, call.occurrence, call.tool, call.args_hash))
        return self._rest.get((call.node_id, call.tool)) if very is None else very


def _allowed(standing: Sequence[PolicyRule], tool: str, args: JsonObject) -> bool:
    """Return whether the first rule that matches this call allows it; none before it may do so that
    does not."""
    for rule in standing:
        fits = rule.matches(tool, args, is_all=True)
        if fits or (fits is None and rule.verdict != "allow"):
            return rule.verdict == "allow"
    return False


class _Fit:
    def __init__(self, outcomes: Outcomes, *, computed_parks: bool, beside_mocks: bool) -> None:
        self._outcomes = outcomes
        self._beside_mocks = beside_mocks
        self._computed_parks = computed_parks

    def faults(self, pattern: Fields, args: JsonObject) -> Iterator[str]:
        """Describe each argument that differs, in the order of their names."""
        for name in sorted(args.keys() | pattern.fields.keys()):
            expected = field_of(pattern, name)
            value: Value = args.get(name, ABSENT)
            if not self._fits(expected, value):
                yield f"{name} {_expected(expected)}"
            elif value is not ABSENT and self._computed_parks and _is_computed(expected):
                yield f"{name} is computed, and the policy requires approval of such calls"

    def _fits(self, pattern: Pattern, value: Value) -> bool:
        match pattern:
            case Computed():
                return True
            case Known():
                return any(_same(one, value) for one in pattern.values)
            case Digested():
                return value is not ABSENT and _digest(value) == pattern.sha256
            case FromResult():
                results = self._outcomes(pattern.node_id)
                if self._beside_mocks and not results:
                    return True
                return any(_same(one, value) for r in results for one in parts(r, pattern.path))
            case Fields():
                keys = pattern.fields.keys() | value.keys() if isinstance(value, dict) else ()
                return isinstance(value, dict) and all(
                    self._fits(field_of(pattern, key), value.get(key, ABSENT)) for key in keys
                )
            case Items():
                return (
                    isinstance(value, list)
                    and len(value) == len(pattern.items)
                    and all(map(self._fits_item, pattern.items, value))
                )
            case _:
                return any(self._fits(one, value) for one in pattern.patterns)

    def _fits_item(self, pattern: Pattern, value: JsonValue) -> bool:
        """Match an item of a list, where JSON has null for an absent value."""
        return self._fits(pattern, value) or (value is None and self._fits(pattern, ABSENT))


def _same(one: Value, other: Value) -> bool:
    if one is ABSENT or other is ABSENT:
        return one is other
    return one == other if isinstance(one, str) else same_json(one, other)


def _digest(value: JsonValue) -> str | None:
    try:
        return sha256_of(value)
    except ValueError:
        return None


def _is_computed(pattern: Pattern) -> bool:
    match pattern:
        case Computed():
            return True
        case Fields():
            spread = any(_is_computed(one.value) for one in pattern.spreads)
            return spread or any(map(_is_computed, pattern.fields.values()))
        case Items():
            return any(map(_is_computed, pattern.items))
        case AnyOf():
            return any(map(_is_computed, pattern.patterns))
        case _:
            return False


def _expected(pattern: Pattern) -> str:
    """Describe what was approved, briefly."""
    match pattern:
        case Known(values=(only,)) if only is ABSENT:
            return "was not to be given"
        case Known(parameter=str()):
            return "was to be the caller's"
        case Known() | Digested():
            return "was to be another value"
        case FromResult():
            return f"was to come from a result of {pattern.node_id}"
        case _:
            return "was to be built otherwise"
