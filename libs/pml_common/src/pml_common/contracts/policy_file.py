"""The policy file: what is allowed, what needs an approval, what is denied.

```json
{
  "rules": [
    {"pattern": "fs:write_*", "arguments": {"path": {"under": "/work"}}, "verdict": "allow"},
    {"pattern": "cap:ops:*", "verdict": "ask"}
  ],
  "read_only": "allow",
  "otherwise": "ask",
  "computed": "show",
  "scopes": {"acme.webapp": {"rules": [{"pattern": "*", "verdict": "deny"}]}}
}
```
Every part is optional. A scope listed under `scopes` has only its own policy.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from pml_common.contracts import fault_words
from pml_common.contracts.decision import ArgumentRule, Policy, PolicyRule, Verdict
from pml_common.contracts.scope import Scope

_WIDE: Final = re.compile(r"[:*?\[]")
"""Characters of which a pattern needs at least one to match any name."""


class PolicyInvalid(ValueError):
    """The file cannot be used; each of `faults` names a field and what is wrong with it."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@dataclass(frozen=True)
class Policies:
    """The policy of every scope."""

    default: Policy = field(default_factory=Policy)
    scopes: Mapping[str, Policy] = field(default_factory=dict[str, Policy])

    def of(self, scope: Scope) -> Policy:
        """Return the policy of a scope."""
        return self.scopes.get(str(scope), self.default)


def _may_match(pattern: str) -> str:
    if not _WIDE.search(pattern):
        raise ValueError(
            "matches no tool and no capability: write fs:read, fs:*, or cap:<namespace>:<action>"
        )
    return pattern


def _absolute(folder: str) -> str:
    if not folder.startswith("/"):
        raise ValueError("is not an absolute path: write /home/me/work")
    return folder


def _scope(name: str) -> str:
    org, dot, project = name.partition(".")
    try:
        Scope(org=org, project=project)
    except ValidationError:
        raise ValueError("is not a scope: write <org>.<project>") from None
    return f"{org}{dot}{project}"


class _Strict(BaseModel):
    """A part of the file; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class _Argument(_Strict):
    under: Annotated[str, AfterValidator(_absolute)] | None = None
    equals: str | int | float | bool | None = None
    like: str | None = None

    @model_validator(mode="after")
    def _one(self) -> "_Argument":
        if len(self.model_fields_set) != 1:
            raise ValueError("takes one of under, equals, like")
        return self


class _Rule(_Strict):
    pattern: Annotated[str, AfterValidator(_may_match)]
    arguments: dict[str, _Argument] = Field(default_factory=dict[str, _Argument])
    verdict: Verdict

    @property
    def rule(self) -> PolicyRule:
        """The rule as a contract."""
        named = (
            ArgumentRule(name=name, **one.model_dump()) for name, one in self.arguments.items()
        )
        return PolicyRule(pattern=self.pattern, arguments=tuple(named), verdict=self.verdict)


class _Policy(_Strict):
    rules: tuple[_Rule, ...] = ()
    read_only: Verdict = Policy().read_only
    otherwise: Verdict = Policy().otherwise
    computed: Literal["show", "park"] = Policy().computed

    @property
    def policy(self) -> Policy:
        """The policy as a contract."""
        return Policy(
            rules=tuple(one.rule for one in self.rules),
            read_only=self.read_only,
            otherwise=self.otherwise,
            computed=self.computed,
        )


class _File(_Policy):
    scopes: dict[Annotated[str, AfterValidator(_scope)], _Policy] = Field(
        default_factory=dict[str, _Policy]
    )


def parse_policies(text: str) -> Policies:
    """Parse a policy file. Raises PolicyInvalid with all faults."""
    repeated: list[str] = []

    def once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            repeated.extend(sorted({name for name in names if names.count(name) > 1}))
        return found

    try:
        document = cast(JsonValue, json.loads(text, object_pairs_hook=once))
    except ValueError as error:
        raise PolicyInvalid((f"not JSON: {error}",)) from error
    if repeated:
        raise PolicyInvalid(tuple(f"{name}: is given twice" for name in repeated))
    try:
        file = _File.model_validate(document)
    except ValidationError as error:
        raise PolicyInvalid(faults_of(error)) from None
    return Policies(file.policy, {name: one.policy for name, one in file.scopes.items()})


def faults_of(error: ValidationError) -> tuple[str, ...]:
    """Describe each fault with its place."""
    faults, unknown = fault_words.faults_of(error), f": {fault_words.UNKNOWN}"
    return tuple(re.sub(f"{unknown}$", ": is not a known field", fault) for fault in faults)
