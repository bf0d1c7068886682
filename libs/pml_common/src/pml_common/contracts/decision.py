"""Policies, and the decision taken on a program before it runs."""

import hashlib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from posixpath import normpath
from typing import Annotated, Final, Literal
from urllib.parse import unquote

from pydantic import Field, JsonValue, StringConstraints

from pml_common.contracts.base import Contract
from pml_common.contracts.json_values import same_json
from pml_common.contracts.tool import JsonObject, ToolDefinition

Verdict = Literal["allow", "ask", "deny"]

STRICTNESS: Final[dict[Verdict, int]] = {"allow": 0, "ask": 1, "deny": 2}

_MOST_DECODINGS: Final = 8
"""Each part of a chain of programs may decode a path once."""


def _strictest(possible: Sequence[tuple[Verdict, str]]) -> tuple[Verdict, str]:
    """Return the first of the strictest verdicts."""
    return max(possible, key=lambda one: STRICTNESS[one[0]])


def _is_under(path: str, folder: str) -> bool | None:
    """Return whether an absolute path is inside a folder, or the folder itself; None where that
    depends on how the server reads it."""
    readings = _readings(path)
    if readings is None:
        return None
    found = {_is_read_under(one, folder) for one in readings}
    return found.pop() if len(found) == 1 else None


def _readings(path: str) -> Sequence[str] | None:
    """Return the paths that servers may read in a text: a backslash may separate, an encoded
    character stand for itself, however often it is encoded, and a zero character end it. None for a
    text that is encoded more often than any server decodes."""
    decoded = [path]
    while (further := unquote(decoded[-1])) != decoded[-1]:
        if len(decoded) > _MOST_DECODINGS:
            return None
        decoded.append(further)
    ended = [one for text in decoded for one in (text, text.partition("\0")[0])]
    readings = [one for text in ended for one in (text, text.replace("\\", "/"))]
    elsewhere = [""] if any(one.startswith("//") for one in readings) else []  # of another host
    return [*readings, *elsewhere]


def _is_read_under(path: str, folder: str) -> bool:
    whole, top = (f"/{normpath(one).lstrip('/')}" for one in (path, folder))  # // is kept by it
    return path.startswith("/") and (whole == top or whole.startswith(top.rstrip("/") + "/"))


class ArgumentRule(Contract):
    """The condition on argument `name` for a rule to match, one of: `under` a folder, by path only
    (`..` is resolved, links are not; a path that servers may read as inside or outside, as
    `/a/..\\b`, is neither); `equals` a value; `like` a shell-style glob over text."""

    name: str
    under: str | None = None
    equals: str | int | float | bool | None = None
    like: str | None = None

    def matches(self, value: JsonValue) -> bool | None:
        """Return whether an argument meets the condition; None where that depends on its server."""
        if self.under is not None:
            return _is_under(value, self.under) if isinstance(value, str) else False
        if self.like is not None:
            return isinstance(value, str) and fnmatchcase(value, self.like)
        return same_json(value, self.equals)


class PolicyRule(Contract):
    """A rule of a policy. `pattern` is a shell-style glob over `server:tool`, and over
    `cap:namespace:action` for capabilities that programs call. With `arguments` it applies to
    single calls: each named argument must be present and match. The first rule that matches
    wins."""

    pattern: Annotated[str, StringConstraints(min_length=1)]
    arguments: tuple[ArgumentRule, ...] = ()
    verdict: Verdict

    def speaks_of(self, tool_id: str) -> bool:
        """Return whether calls of a tool may match."""
        return fnmatchcase(tool_id, self.pattern)

    def matches(self, tool_id: str, known: JsonObject, *, is_all: bool) -> bool | None:
        """Return whether the rule matches a call with these arguments; None if that depends on
        arguments missing in `known`, or on how its server reads them."""
        if not self.speaks_of(tool_id):
            return False
        told = [
            None
            if rule.name not in known and not is_all
            else rule.matches(known[rule.name])
            if rule.name in known
            else False
            for rule in self.arguments
        ]
        return False if False in told else None if None in told else True


OPINION: Final = "learn:feedback"
"""The tool that stores its caller's opinion of a run: where no rule speaks of it, it is decided on
as one that reads. No MCP server can have a tool of this id."""


class Policy(Contract):
    """A scope's rules, and the verdicts if no rule matches. `computed`: whether approving a program
    allows computed arguments (`show`), or each call with one needs its own approval (`park`)."""

    rules: tuple[PolicyRule, ...] = ()
    read_only: Verdict = "allow"
    otherwise: Verdict = "ask"
    computed: Literal["show", "park"] = "show"

    @cached_property
    def revision(self) -> str:
        """SHA-256 of its content, hex."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @cached_property
    def can_deny(self) -> bool:
        """Whether it denies any tool or capability."""
        return "deny" in (self.read_only, self.otherwise, *(rule.verdict for rule in self.rules))

    def verdict_on(
        self, tool: ToolDefinition, known: JsonObject | None = None, *, is_all: bool = False
    ) -> tuple[Verdict, str]:
        """Return the verdict of the first rule that matches, else by the server's annotations, and
        the reason. If it depends on arguments not `known`, the strictest possible one.

        One function for whole programs and for single calls: they must never disagree.
        """
        possible: list[tuple[Verdict, str]] = []
        for rule in self.rules:
            fits = rule.matches(tool.tool_id, known or {}, is_all=is_all)
            if fits is not False:
                where = " where its arguments match" if rule.arguments else ""
                possible.append(
                    (rule.verdict, f"The rule {rule.pattern}{where} says {rule.verdict}.")
                )
            if fits:
                return _strictest(possible)
        return _strictest([*possible, self._by_hints(tool)])

    def _by_hints(self, tool: ToolDefinition) -> tuple[Verdict, str]:
        if tool.tool_id == OPINION:
            return self.read_only, f"It stores the caller's opinion of a run: {self.read_only}."
        if tool.annotations.read_only:
            return self.read_only, f"Its server marks it read-only: {self.read_only}."
        if tool.annotations.destructive:
            return self.otherwise, f"Its server marks it destructive: {self.otherwise}."
        return self.otherwise, f"Its server does not mark it read-only: {self.otherwise}."

    def verdict_on_capability(self, names: Sequence[str]) -> tuple[Verdict, str]:
        """Return the verdict of the first rule that matches one of a capability's names, former
        ones included, and the reason. It can only be stricter than the verdicts on its tools, which
        apply as well."""
        for rule in self.rules:
            if not rule.arguments and any(
                fnmatchcase(f"cap:{name}", rule.pattern) for name in names
            ):
                return rule.verdict, f"The rule {rule.pattern} says {rule.verdict}."
        return "allow", "No rule names it; its tools decide."


class DryRun(Contract):
    """A run without side effects: tools that are not marked read-only, and those in `mocks`, are
    mocked. A list in `mocks` holds the results of successive calls."""

    mocks: dict[str, JsonValue] = Field(default_factory=dict)

    def answers(self, tool: ToolDefinition) -> bool:
        """Return whether calls of the tool are mocked."""
        return tool.tool_id in self.mocks or not tool.annotations.read_only


class ToolDecision(Contract):
    """The verdict on one tool; `definition_hash` is the definition it was given for. `node_ids` are
    the calls that reach it, including calls of capabilities; empty if only dynamic calls may reach
    it. `mocked`: in this dry run its calls are mocked. `read_only`: its server marks it so."""

    tool: str
    verdict: Verdict
    reason: str
    definition_hash: str
    node_ids: tuple[str, ...]
    mocked: bool = False
    read_only: bool = False


class Decision(Contract):
    """The verdict on a whole program: the strictest of its tools'.

    `reasons` are sentences for the approver. `askable` are the tools, each with its definition
    hash, that dynamic calls may reach once a person has approved that single call.
    """

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    tools: tuple[ToolDecision, ...] = ()
    askable: dict[str, str] = Field(default_factory=dict)
