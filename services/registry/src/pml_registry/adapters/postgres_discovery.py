"""Candidates of discovery in Postgres: an index of weighed terms, and the stored vectors."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

import asyncpg
from typing_extensions import override

from pml_common.contracts.registry import DiscoveryHit
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolAnnotations, ToolDefinition
from pml_common.storage.columns import scope_columns
from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_rows import presented_capability, tool_definition
from pml_registry.domain.intents import TERM_CANDIDATES, Part
from pml_registry.domain.offers import Subject, judged_tool
from pml_registry.domain.ranking import Candidate, Kind, Ranked
from pml_registry.domain.record_views import discovery_hits
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import CandidateStore
from pml_registry.ports.vectors import Embedded, Near

_SQL = load_queries("pml_registry")
_WEIGH: Mapping[Kind, str] = {"tool": "weigh-tools", "capability": "weigh-capabilities"}


class PostgresCandidateStore(CandidateStore):
    """Candidates from the stores' own rows."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    @override
    async def candidates(
        self,
        viewer: Viewer,
        kind: Kind,
        parts: Sequence[Part],
        embedded: Embedded | None,
        near: Sequence[Near],
        supported: Sequence[str] = (),
    ) -> Sequence[Candidate]:
        who = () if kind == "tool" else (viewer.principal,)
        asked = [(number, term) for number, part in enumerate(parts, 1) for term in part.terms]
        terms = sorted({term for _, term in asked})
        # No vector is of the model without a name.
        embedded = embedded or Embedded("", [[0.0]] * len(parts))
        rows = await self._pools.fetch(
            viewer.scope,
            _SQL[_WEIGH[kind]],
            *scope_columns(viewer.scope),
            [*(each.id for each in near), *supported],
            [
                *(each.cosine if len(parts) == 1 else None for each in near),
                *(None for _ in supported),
            ],
            terms,
            [number for number, _ in asked],
            [term for _, term in asked],
            [part.limit for part in parts],
            TERM_CANDIDATES,
            embedded.model,
            [number for vector in embedded.vectors for number in vector],
            *who,
        )
        return [_candidate(kind, row, terms) for row in rows]

    @override
    async def subjects(
        self, scope: Scope, ranked: Sequence[Ranked]
    ) -> Mapping[tuple[Kind, str], Subject]:
        tools = [each.id for each in ranked if each.kind == "tool"]
        behaviours = [UUID(each.id) for each in ranked if each.kind == "capability"]
        where, fetch = scope_columns(scope), partial(self._pools.fetch, scope)
        of_capabilities = await fetch(_SQL["capabilities-judged"], *where, behaviours)
        used = {tool for row in of_capabilities for tool in row["tools_used"]}
        of_tools = await fetch(_SQL["tools-judged"], *where, sorted({*tools, *used}))
        known = {
            row["tool_id"]: ToolAnnotations.model_validate_json(row["annotations"] or "{}")
            for row in of_tools
        }

        def judged(tool_id: str) -> ToolDefinition:
            return judged_tool(tool_id, known.get(tool_id, ToolAnnotations()))

        found: dict[tuple[Kind, str], Subject] = {
            ("tool", tool): Subject([judged(tool)]) for tool in tools if tool in known
        }
        for row in of_capabilities:
            uses = [judged(tool) for tool in row["tools_used"]]
            found["capability", row["id"]] = Subject(uses, row["names"])
        return found

    @override
    async def hits(self, viewer: Viewer, ranked: Sequence[Ranked]) -> Sequence[DiscoveryHit]:
        tools = [each.id for each in ranked if each.kind == "tool"]
        capabilities = [UUID(each.id) for each in ranked if each.kind == "capability"]
        where, fetch = scope_columns(viewer.scope), partial(self._pools.fetch, viewer.scope)
        of_tools, of_capabilities = await asyncio.gather(
            fetch(_SQL["tools-by-id"], *where, tools),
            fetch(_SQL["capabilities-by-id"], *where, capabilities, viewer.principal),
        )
        definitions = {row["tool_id"]: tool_definition(row) for row in of_tools}
        records = {str(row["pattern_id"]): presented_capability(row) for row in of_capabilities}
        return discovery_hits(ranked, definitions, records)


def _candidate(kind: Kind, row: asyncpg.Record, terms: Sequence[str]) -> Candidate:
    """Parse a row of `weigh-tools` or `weigh-capabilities`; its weights are in the order of the
    terms."""
    found = zip(terms, row["weights"], strict=True)
    weights = {term: weight for term, weight in found if weight is not None}
    cosines = tuple(row["cosines"])
    if kind == "tool":
        return Candidate(kind, row["id"], cosines, weights, row["server"])
    judged, rate = row["judged"], row["success_value"]
    if rate is None and judged:
        rate = row["success_count"] / judged
    return Candidate(kind, row["id"], cosines, weights, runs=judged, success_rate=rate or 0.0)
