"""A registry that answers the queries about records with the golden examples."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.dns import ChangeRecord, DnsQuery

Q = TypeVar("Q", bound=DnsQuery)
R = TypeVar("R", bound=Contract)

EXAMPLES = Path(__file__).parents[4] / "libs/pml_common/examples"
DNS_QUERIES = (
    catalog.LOOKUP_RECORD,
    catalog.WHOIS_RECORD,
    catalog.QUERY_RECORDS,
    catalog.READ_HISTORY,
    catalog.CHANGE_RECORD,
    catalog.DESCRIBE_RECORD,
    catalog.PLAN_MERGE,
    catalog.MERGE_CAPABILITIES,
    catalog.CURATE,
    catalog.LIFT_CAPABILITY,
    catalog.SAVE_CAPABILITY,
)


def example(query_type: QueryType[Query, R]) -> R:
    """Return the golden reply to a query."""
    file = f"qry.{query_type.owner}.{query_type.name}.v{query_type.version}.reply.json"
    return query_type.reply.model_validate_json((EXAMPLES / file).read_text(encoding="utf-8"))


@dataclass
class FakeDns:
    """Records what it is asked; raises `failure` if that is set."""

    bus: Bus
    asked: list[DnsQuery] = field(default_factory=list[DnsQuery])
    failure: QueryFailed | None = None

    async def start(self) -> None:
        """Start serving."""
        for query_type in DNS_QUERIES:
            await self._serve(query_type)

    async def _serve(self, query_type: QueryType[Q, R]) -> None:
        async def answer(query: Q) -> R:
            self.asked.append(query)
            if self.failure is not None:
                raise self.failure
            return example(query_type)

        await self.bus.serve(query_type, answer)

    @property
    def changes(self) -> list[ChangeRecord]:
        """The changes that were asked for."""
        return [each for each in self.asked if isinstance(each, ChangeRecord)]
