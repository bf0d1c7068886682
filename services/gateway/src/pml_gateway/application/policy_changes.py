"""Changes of the policy, as far as clients see other lists afterwards."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.offered import permitted
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.ports import OfferingServers, ToolServers

_CAPABILITIES: Final = "cap:"
_WILDCARD: Final = re.compile(r"[*?\[]")


class PolicyChanges:
    """Compares the policy of one scope with that of the last look. `on_tools` is called where other
    tools or capabilities are listed, `on_offers` for each server whose other offers are, with those
    of before and of now."""

    def __init__(
        self,
        scope: Scope,
        policy_of: Callable[[Scope], Policy],
        tools: ToolServers,
        offers: OfferingServers,
        on_tools: Callable[[], Awaitable[None]],
        on_offers: Callable[[Offers, Offers], Awaitable[None]],
    ) -> None:
        self._scope = scope
        self._policy_of = policy_of
        self._tools = tools
        self._offers = offers
        self._on_tools = on_tools
        self._on_offers = on_offers
        self._seen = policy_of(scope)

    async def look(self) -> None:
        """Tell of what has changed since the last look."""
        before, now = self._seen, self._policy_of(self._scope)
        self._seen = now
        if before is now or before == now:
            return
        if _capability_rules(before) != _capability_rules(now) or self._lists_others(before, now):
            await self._on_tools()
        offers = self._offers.offers()
        were, are = permitted(offers, before), permitted(offers, now)
        for server in offers:
            if were[server] != are[server]:
                await self._on_offers(were[server], are[server])

    def _lists_others(self, before: Policy, now: Policy) -> bool:
        return any(
            (before.verdict_on(tool)[0] == "deny") != (now.verdict_on(tool)[0] == "deny")
            for tools in self._tools.list_tools().values()
            for tool in tools
        )


def _capability_rules(policy: Policy) -> Sequence[PolicyRule]:
    """Return the rules that may name capabilities, whose names are the registry's to know."""
    return [rule for rule in policy.rules if not rule.arguments and _may_name_one(rule.pattern)]


def _may_name_one(pattern: str) -> bool:
    plain = _WILDCARD.split(pattern, maxsplit=1)[0]
    return plain.startswith(_CAPABILITIES) or (plain != pattern and _CAPABILITIES.startswith(plain))
