"""Replies of a query's owner that cannot read what it is asked."""

from typing import Never

from libs.pml_common.tests.support.proofs import now
from pml_common.bus.codec import Payloads
from pml_common.bus.errors import BusUnavailable
from pml_common.bus.identity import all_services_identity
from pml_common.bus.query_exchange import QueryExchange
from pml_common.bus.query_macs import ERROR_CODE
from pml_common.contracts import catalog
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope


class AwayAfterwards(Payloads):
    """A store that takes bodies, and then does not answer."""

    async def put(self, key: str, data: bytes) -> None:
        """Take a body."""

    async def get(self, key: str) -> Never:
        """Fail."""
        raise BusUnavailable("NATS does not answer")


async def test_a_query_whose_body_cannot_be_fetched_may_be_asked_again() -> None:
    """Its owner has done nothing: `internal` would leave that open."""
    exchange = QueryExchange(AwayAfterwards(), all_services_identity(), now)
    query = ListTools(scope=Scope(org="acme", project="webapp"))
    asked = await exchange.seal(catalog.LIST_TOOLS, query, {}, inline_limit=0)

    async def answer(_: ListTools) -> ToolCatalog:
        raise AssertionError("it was handled")

    reply = await exchange.answer(catalog.LIST_TOOLS, answer, asked)
    assert reply.headers[ERROR_CODE] == "unavailable"
    assert exchange.doubt(catalog.LIST_TOOLS, asked, reply) is None
