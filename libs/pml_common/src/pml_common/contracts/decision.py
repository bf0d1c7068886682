"""Who must approve: policies and the decision taken before anything runs (A11)."""

from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import StringConstraints

from pml_common.contracts.base import Contract
from pml_common.contracts.tool import ToolDefinition

Verdict = Literal["allow", "ask", "deny"]


class PolicyRule(Contract):
    """`pattern` is a shell-style glob over `server:tool`; the first rule that matches wins."""

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


class ToolDecision(Contract):
    """The verdict on one tool; `definition_hash` is the definition it was given for. Without
    `node_ids`, only calls that are known when they run may reach it."""

    tool: str
    verdict: Verdict
    reason: str
    definition_hash: str
    node_ids: tuple[str, ...]


class Decision(Contract):
    """The verdict on a whole program: the strictest of its tools'.

    `reasons` are sentences a person can approve by.
    """

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    tools: tuple[ToolDecision, ...] = ()
