"""Queries over NATS whose replies are not the owner's."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from nats.aio.msg import Msg
from typing_extensions import override

from libs.pml_common.tests.support.proofs import now
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.client import DirectClient
from pml_common.bus.errors import QueryFailed
from pml_common.bus.identity import all_services_identity
from pml_common.bus.query import NatsQueryClient
from pml_common.bus.query_exchange import QueryExchange
from pml_common.contracts import catalog
from pml_common.contracts.registry import ListTools
from pml_common.contracts.scope import Scope
from pml_common.testing.memory_broker import MemoryBroker, MemoryPayloads

T = TypeVar("T")


class Forged(DirectClient):
    """A connection on which every request gets a forged error, and nothing else in time."""

    @property
    @override
    def is_connected(self) -> bool:
        return True

    @override
    async def new_reply_subject(self) -> str:
        return "_INBOX.gateway.1"

    @override
    async def ask(
        self,
        subject: str,
        payload: bytes,
        headers: dict[str, str] | None,
        reply_to: str,
        accept: Callable[[Msg], T | None],
    ) -> T:
        headers = {"Pml-Error-Code": "conflict"}
        assert accept(Msg(self, reply_to, data=b"forged", headers=headers)) is None
        raise TimeoutError


async def test_a_query_without_a_proven_reply_says_what_came_instead() -> None:
    exchange = QueryExchange(MemoryPayloads(MemoryBroker()), all_services_identity(), now)
    client = NatsQueryClient(Forged(), exchange)
    question = ListTools(scope=Scope(org="acme", project="webapp"))
    with pytest.raises(QueryFailed) as failed:
        await client.request(catalog.LIST_TOOLS, question, timeout=PATIENCE_S)
    assert failed.value.code == "unavailable"
    assert failed.value.message == (
        f"registry list-tools: no answer within {PATIENCE_S:g} s; a reply was not believed: "
        "it has no MAC; the registry proves what it replies; it says: forged"
    )
