"""Changes of the policy: told where lists become others, and only there."""

from dataclasses import dataclass, field

import pytest

from pml_common.contracts.decision import Policy, PolicyRule, Verdict
from pml_common.contracts.scope import Scope
from pml_gateway.application.policy_changes import PolicyChanges
from pml_gateway.domain.servers.offers import Offers
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import FakeServers
from services.gateway.tests.support.offering import StubOffers

NOTES = Offers(prompts=({"name": "greet"},))


def _policy(pattern: str, verdict: Verdict) -> Policy:
    return Policy(rules=(PolicyRule(pattern=pattern, verdict=verdict),))


@dataclass
class Box:
    """A policy that may change, and what is told."""

    policy: Policy = field(default_factory=Policy)
    told: list[str] = field(default_factory=list[str])

    def of(self, scope: Scope) -> Policy:
        assert scope == SCOPE
        return self.policy

    async def on_tools(self) -> None:
        self.told.append("tools")

    async def on_offers(self, before: Offers, now: Offers) -> None:
        self.told.append(f"{len(before.prompts)} prompts, now {len(now.prompts)}")

    def changes(self) -> PolicyChanges:
        offers = StubOffers({"notes": NOTES, "fs": Offers()})
        return PolicyChanges(SCOPE, self.of, FakeServers(), offers, self.on_tools, self.on_offers)


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (_policy("fs:write", "deny"), ["tools"]),
        (_policy("fs:write", "allow"), []),
        (_policy("web:*", "deny"), []),
        (_policy("cap:notes:*", "deny"), ["tools"]),
        (_policy("c*", "allow"), ["tools"]),
        (_policy("c", "allow"), []),
        (_policy("notes:prompts/*", "deny"), ["1 prompts, now 0"]),
        (_policy("*", "deny"), ["tools", "1 prompts, now 0"]),
        (Policy(), []),
    ],
)
async def test_a_change_is_told_once_where_lists_become_others(
    policy: Policy, told: list[str]
) -> None:
    box = Box()
    changes = box.changes()
    box.policy = policy
    for _ in range(2):
        await changes.look()
    assert box.told == told


async def test_a_change_back_is_told_too() -> None:
    box = Box(_policy("fs:*", "deny"))
    changes = box.changes()
    await changes.look()
    assert box.told == []
    box.policy = Policy()
    await changes.look()
    assert box.told == ["tools"]
