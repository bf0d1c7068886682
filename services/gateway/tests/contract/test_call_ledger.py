"""Contract of call ledgers."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from pml_common.contracts.gateway import ToolOutcome
from pml_gateway.domain.tool_calls.ledger import Entry, fingerprint
from pml_gateway.ports import CallLedger
from services.gateway.tests.conftest import Stores
from services.gateway.tests.support.builders import ELSEWHERE, later, workflow
from services.gateway.tests.support.calling import call

pytestmark = pytest.mark.integration

OK = ToolOutcome(status="ok", result={"text": "NUL \x00 é"})
ERROR = ToolOutcome(status="tool_error", message="too late")


@pytest.fixture
def ledger(stores: Stores) -> CallLedger:
    return stores.ledger


def begun() -> Entry:
    return Entry(fingerprint(call(workflow())), uuid4(), later(12), tool="fs:read")


def other_than(entry: Entry) -> Entry:
    """Build an entry of another call under the same key, which replaces this one."""
    return replace(begun(), fingerprint="other", replaces=entry.fingerprint)


async def test_a_call_begins_once_and_its_beginning_is_kept(ledger: CallLedger) -> None:
    asked, first = call(workflow()), begun()
    assert await ledger.begin(asked, first) is None
    assert await ledger.begin(asked, begun()) == first


async def test_of_many_beginnings_at_once_one_counts(ledger: CallLedger) -> None:
    asked = call(workflow())
    known = await asyncio.gather(*(ledger.begin(asked, begun()) for _ in range(8)))
    assert sum(each is None for each in known) == 1


async def test_an_outcome_is_kept_and_never_replaced(ledger: CallLedger) -> None:
    asked, first = call(workflow()), begun()
    await ledger.begin(asked, first)
    assert await ledger.settle(asked, first, OK) == OK
    assert await ledger.settle(asked, first, ERROR) == OK
    assert await ledger.begin(asked, begun()) == replace(first, outcome=OK)


async def test_calls_are_added_with_their_outcomes_and_replace_none(ledger: CallLedger) -> None:
    known, new = call(workflow()), call(workflow())
    first = begun()
    await ledger.settle(known, first, OK)
    added = replace(begun(), outcome=ERROR)
    for _ in range(2):
        await ledger.add([(known, added), (new, added)])
    assert await ledger.find(known) == replace(first, outcome=OK)
    assert await ledger.find(new) == added


async def test_an_outcome_is_kept_of_a_call_that_needed_no_beginning(ledger: CallLedger) -> None:
    asked, first = call(workflow()), begun()
    assert await ledger.find(asked) is None
    assert await ledger.settle(asked, first, OK) == OK
    assert await ledger.settle(asked, begun(), ERROR) == OK
    assert await ledger.find(asked) == replace(first, outcome=OK)


@pytest.mark.parametrize("repeatable", [True, False])
async def test_an_outcome_is_kept_for_good_or_for_the_next_fall(
    ledger: CallLedger, repeatable: bool
) -> None:
    asked, entry = call(workflow()), replace(begun(), repeatable=repeatable)
    assert await ledger.settle(asked, entry, OK) == OK
    assert await ledger.settle(asked, entry, ERROR) == OK


async def test_a_call_of_a_discarded_execution_is_replaced_once_begun_or_ended(
    ledger: CallLedger,
) -> None:
    for begins in (True, False):
        asked, first = call(workflow()), begun()
        await ledger.settle(asked, first, OK)
        mine = other_than(first)
        if begins:
            assert await ledger.begin(asked, mine) is None
            assert await ledger.find(asked) == replace(mine, replaces=None)
            assert await ledger.begin(asked, other_than(first)) == replace(mine, replaces=None)
        assert await ledger.settle(asked, mine, ERROR) == ERROR
        assert await ledger.find(asked) == replace(mine, replaces=None, outcome=ERROR)
        assert await ledger.settle(asked, other_than(first), OK) == ERROR


async def test_a_late_outcome_of_another_call_under_the_key_changes_nothing(
    ledger: CallLedger,
) -> None:
    asked, late = call(workflow()), begun()
    mine = other_than(late)
    await ledger.begin(asked, mine)
    assert await ledger.settle(asked, late, OK) == OK
    assert await ledger.find(asked) == replace(mine, replaces=None)
    await ledger.settle(asked, mine, ERROR)
    assert await ledger.settle(asked, late, OK) == OK
    assert await ledger.find(asked) == replace(mine, replaces=None, outcome=ERROR)


async def test_equal_keys_in_two_scopes_are_two_calls(ledger: CallLedger) -> None:
    here = call(workflow())
    there = here.model_copy(update={"scope": ELSEWHERE})
    await ledger.begin(here, begun())
    assert await ledger.begin(there, begun()) is None
    await ledger.settle(here, begun(), OK)
    known = await ledger.begin(there, begun())
    assert known is not None
    assert known.outcome is None


async def test_of_those_who_take_a_call_over_one_succeeds(ledger: CallLedger) -> None:
    asked, first = call(workflow()), begun()
    await ledger.begin(asked, first)
    heirs = [begun() for _ in range(5)]
    taken = await asyncio.gather(*(ledger.take_over(asked, each, first.owner) for each in heirs))
    assert sum(taken) == 1
    assert await ledger.begin(asked, begun()) == heirs[taken.index(True)]


async def test_a_settled_call_cannot_be_taken_over(ledger: CallLedger) -> None:
    asked, first = call(workflow()), begun()
    assert not await ledger.take_over(asked, begun(), first.owner)
    await ledger.begin(asked, first)
    await ledger.settle(asked, first, OK)
    assert not await ledger.take_over(asked, begun(), first.owner)


async def test_old_calls_are_forgotten(ledger: CallLedger) -> None:
    old, new = call(workflow()), call(workflow())
    await ledger.begin(old, begun())
    await ledger.begin(new, replace(begun(), deadline=later(100)))
    await ledger.forget(later(50))
    assert await ledger.begin(old, begun()) is None
    assert await ledger.begin(new, begun()) is not None
