"""Who must approve: policies and the decision taken before anything runs (A11)."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from pml_common.contracts.base import Contract
from pml_common.contracts.tool import ToolDefinition

Verdict = Literal["allow", "ask", "deny"]


class PolicyRule(Contract):
    """`pattern` is a shell-style glob over `server:tool`, and over `cap:namespace:action` for
    capabilities that programs call; the first rule that matches wins."""

    pattern: Annotated[str, StringConstraints(min_length=1)]
    verdict: Verdict


class Policy(Contract):
    """A scope's rules, and what holds where no rule matches."""

    rules: tuple[PolicyRule, ...] = ()
    read_only: Verdict = "allow"
    otherwise: Verdict = "ask"

    def verdict_on(self, tool: ToolDefinition) -> tuple[Verdict, str]:
        """The first rule that matches, else what the server says of its tool; and why, in words.

        One function for whole programs and for single calls: they must never disagree.
        """
        for rule in self.rules:
            if fnmatchcase(tool.tool_id, rule.pattern):
                return rule.verdict, f"The rule {rule.pattern} says {rule.verdict}."
        if tool.annotations.read_only:
            return self.read_only, f"Its server marks it read-only: {self.read_only}."
        if tool.annotations.destructive:
            return self.otherwise, f"Its server marks it destructive: {self.otherwise}."
        return self.otherwise, f"Its server does not mark it read-only: {self.otherwise}."

    def verdict_on_capability(self, names: Sequence[str]) -> tuple[Verdict, str]:
        """The first rule that matches one of a capability's names, former ones among them; and
        why. It can only make stricter what its tools' verdicts are: those hold beside it."""
        for rule in self.rules:
            if any(fnmatchcase(f"cap:{name}", rule.pattern) for name in names):
                return rule.verdict, f"The rule {rule.pattern} says {rule.verdict}."
        return "allow", "No rule names it; its tools decide."


class DryRun(Contract):
    """A run that changes nothing: tools that are not marked read-only, and those in `mocks`, are
    answered by mocks. A list in `mocks` holds answers for one call after another."""

    mocks: dict[str, JsonValue] = Field(default_factory=dict)

    def answers(self, tool: ToolDefinition) -> bool:
        """Whether a call of it gets a mock."""
        return tool.tool_id in self.mocks or not tool.annotations.read_only


class ToolDecision(Contract):
    """The verdict on one tool; `definition_hash` is the definition it was given for. `node_ids`
    are the calls that reach it, those of capabilities among them; without any, only calls that are
    known when they run may reach it. `mocked`: this is a dry run, and a mock answers its calls.
    `read_only`: its server marks it so."""

    tool: str
    verdict: Verdict
    reason: str
    definition_hash: str
    node_ids: tuple[str, ...]
    mocked: bool = False
    read_only: bool = False


class Decision(Contract):
    """The verdict on a whole program: the strictest of its tools'.

    `reasons` are sentences a person can approve by. `askable` are the tools, each with its
    definition hash, that calls known only when they run may reach once a person has agreed to the
    very call.
    """

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    tools: tuple[ToolDecision, ...] = ()
    askable: dict[str, str] = Field(default_factory=dict)
