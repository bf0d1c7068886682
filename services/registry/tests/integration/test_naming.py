"""Names: reserved before a program runs, given once it has succeeded;."""

import asyncio
from datetime import timedelta

import pytest

from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.gateway import WorkflowOutcome
from pml_registry.domain.reservations import LAPSES_AFTER
from services.registry.tests.support.builders import (
    ELSEWHERE,
    HASH,
    OTHER_HASH,
    SIMILAR_HASH,
    UNNAMED,
    analysed,
)
from services.registry.tests.support.store_driver import StoreDriver, changes

pytestmark = pytest.mark.integration

OTHER_UNNAMED = "unnamed_c0de"


async def refusal(registry: StoreDriver, name: str, analysis: ExecutionAnalyzed) -> str:
    """Return why the name is refused."""
    with pytest.raises(QueryFailed) as refused:
        await registry.reserve(name, analysis)
    assert refused.value.code == "conflict"
    return refused.value.message


async def test_ac01_a_name_is_given_once_the_program_has_succeeded(registry: StoreDriver) -> None:
    analysis = analysed(intent="make sure")
    reserved = await registry.reserve("fs:ensure", analysis)
    assert (reserved.name, reserved.purpose, reserved.version) == ("fs:ensure", "create", 1)
    with pytest.raises(QueryFailed, match="no capability 'fs:ensure'"):
        await registry.resolve("fs:ensure")
    assert await registry.settle(analysis) == "fs:ensure"
    record = await registry.resolve("fs:ensure")
    assert (record.named, record.owner, record.version) == (True, "agent-7", 1)
    assert (record.aliases, record.code_hash) == ((UNNAMED,), HASH)
    assert await registry.names(unlisted=False) == ["fs:ensure"]
    assert changes(registry.published) == [(UNNAMED, "created"), ("fs:ensure", "named")]


async def test_a_settled_name_is_settled_again_without_effect(registry: StoreDriver) -> None:
    analysis = analysed()
    await registry.named("fs:ensure", analysis)
    published = list(registry.published)
    assert await registry.settle(analysis) is None
    assert registry.published == published
    assert (await registry.resolve("fs:ensure")).version == 1


async def test_a_program_that_failed_leaves_the_name_free(registry: StoreDriver) -> None:
    broken = analysed()
    await registry.reserve("fs:ensure", broken)
    assert await registry.settle(broken, succeeded=False) is None
    assert (await registry.resolve(UNNAMED)).named is False
    await registry.named("fs:ensure", analysed(OTHER_HASH))
    assert (await registry.resolve("fs:ensure")).code_hash == OTHER_HASH


async def test_ac01_a_reserved_name_is_refused_to_other_programs(registry: StoreDriver) -> None:
    first = analysed()
    await registry.reserve("fs:ensure", first)
    why = await refusal(registry, "fs:ensure", analysed(OTHER_HASH))
    assert f"fs:ensure is reserved for workflow {first.workflow_id} of agent-7 until" in why


async def test_a_name_with_the_same_callable_name_is_refused(registry: StoreDriver) -> None:
    program = analysed()
    await registry.reserve("fs-a:b", program)
    same = analysed(OTHER_HASH)
    assert "fs-a:b, which is called the same as fs:a_b," in await refusal(registry, "fs:a_b", same)
    await registry.settle(program)
    assert "fs:a_b leads to fs-a:b (acme" in await refusal(registry, "fs:a_b", same)


async def test_of_many_programs_at_once_one_has_the_name(registry: StoreDriver) -> None:
    programs = [analysed(f"a7f3{number:060x}") for number in range(12)]
    answers = await asyncio.gather(
        *(registry.reserve("fs:ensure", each) for each in programs), return_exceptions=True
    )
    refused = [each for each in answers if isinstance(each, QueryFailed)]
    assert len(refused) == len(programs) - 1
    await asyncio.gather(*(registry.settle(each) for each in programs))
    named = [name for name in await registry.names() if ":" in name]
    assert named == ["fs:ensure"]


async def test_a_repeated_reservation_is_the_same_and_renewed(registry: StoreDriver) -> None:
    analysis = analysed()
    reserved = await registry.reserve("fs:ensure", analysis)
    registry.now += LAPSES_AFTER - timedelta(seconds=1)
    assert await registry.reserve("fs:ensure", analysis) == reserved
    registry.now += LAPSES_AFTER - timedelta(seconds=1)
    assert "is reserved for" in await refusal(registry, "fs:ensure", analysed(OTHER_HASH))


async def test_known_code_under_its_name_is_a_use(registry: StoreDriver) -> None:
    await registry.named("fs:ensure", analysed())
    again = analysed()
    used = await registry.reserve("fs:ensure", again)
    assert (used.purpose, used.version) == ("use", 1)
    assert await registry.settle(again) is None
    assert (await registry.resolve("fs:ensure")).aliases == (UNNAMED,)


async def test_known_code_gets_one_more_name_from_its_owner(registry: StoreDriver) -> None:
    await registry.named("fs:ensure", analysed())
    before = await registry.resolve("fs:ensure")
    bobs = analysed().model_copy(update={"principal": "bob"})
    assert "this code is fs:ensure (acme.webapp.fs.ensure." in await refusal(
        registry, "fs:make", bobs
    )
    await registry.named("fs:make", analysed())
    after = await registry.resolve("fs:make")
    assert (after.name, after.record_id) == ("fs:ensure", before.record_id)
    assert set(after.aliases) == {UNNAMED, "fs:make"}


async def test_other_code_becomes_the_next_version(registry: StoreDriver) -> None:
    first, second = analysed(), analysed(OTHER_HASH, intent="better")
    await registry.named("fs:ensure", first)
    before = await registry.resolve("fs:ensure")
    why = await refusal(registry, "fs:ensure", second)
    assert "version 1) of agent-7 is other code: choose another name, or send `update: true`" in why
    reserved = await registry.reserve("fs:ensure", second, update=True, tag="v1.1.0")
    assert (reserved.purpose, reserved.version) == ("version", 2)
    assert (await registry.resolve("fs:ensure")).version == 1
    assert await registry.settle(second) == "fs:ensure"
    record = await registry.resolve("fs:ensure")
    assert (record.record_id, record.version, record.version_tag) == (
        before.record_id,
        2,
        "v1.1.0",
    )
    assert (record.code_hash, record.description) == (OTHER_HASH, "better")
    assert set(record.aliases) == {UNNAMED, OTHER_UNNAMED}
    assert await registry.names() == ["fs:ensure"]
    former = await registry.resolve(str(first.capability.capability_id))
    assert (former.name, former.version, former.code_hash) == ("fs:ensure", 1, HASH)


@pytest.mark.parametrize(
    ("selector", "number"),
    [("@latest", 2), ("@1", 1), ("@2", 2), ("@v1", 2), ("@v1.1.0", 2), ("@2999-12-31", 2)],
)
async def test_a_selector_chooses_the_version(
    registry: StoreDriver, selector: str, number: int
) -> None:
    await registry.named("fs:ensure", analysed())
    second = analysed(OTHER_HASH)
    await registry.reserve("fs:ensure", second, update=True, tag="v1.1.0")
    await registry.settle(second)
    for name in ("fs:ensure", "cap:fs:ensure", UNNAMED):
        record = await registry.resolve(f"{name}{selector}")
        assert (record.version, record.code_hash) == (number, (HASH, OTHER_HASH)[number - 1])
    (answer,) = await registry.describe(f"fs:ensure{selector}")
    assert answer.capability is not None
    assert answer.capability.code_hash == (HASH, OTHER_HASH)[number - 1]


async def test_a_version_that_is_not_there_is_told_with_those_that_are(
    registry: StoreDriver,
) -> None:
    await registry.named("fs:ensure", analysed())
    with pytest.raises(QueryFailed, match="fs:ensure@3: no such version; there are: 1") as missing:
        await registry.resolve("fs:ensure@3")
    assert missing.value.code == "not_found"
    (answer,) = await registry.describe("fs:ensure@3")
    assert answer.capability is None
    with pytest.raises(QueryFailed, match="@newest selects no version: allowed are") as unknown:
        await registry.resolve("fs:ensure@newest")
    assert unknown.value.code == "invalid"


async def test_an_old_version_sent_again_is_a_use_of_it(registry: StoreDriver) -> None:
    await registry.named("fs:ensure", analysed())
    second = analysed(OTHER_HASH)
    await registry.reserve("fs:ensure", second, update=True)
    await registry.settle(second)
    used = await registry.reserve("fs:ensure", analysed())
    assert (used.purpose, used.version) == ("use", 1)


async def test_only_the_owner_makes_a_version(registry: StoreDriver) -> None:
    await registry.named("fs:ensure", analysed())
    bobs = analysed(OTHER_HASH).model_copy(update={"principal": "bob"})
    with pytest.raises(QueryFailed, match="only its owner or an admin adds a version"):
        await registry.reserve("fs:ensure", bobs, update=True)


async def test_code_that_was_named_meanwhile_gets_one_more_name(registry: StoreDriver) -> None:
    one, other = analysed(), analysed()
    await registry.reserve("fs:ensure", one)
    await registry.reserve("fs:make", other)
    assert await registry.settle(one) == "fs:ensure"
    assert await registry.settle(other) == "fs:make"
    record = await registry.resolve("fs:make")
    assert (record.name, set(record.aliases)) == ("fs:ensure", {UNNAMED, "fs:make"})


@pytest.mark.parametrize("state", ["failed", "unknown"])
async def test_a_lapsed_reservation_of_a_workflow_that_ended_is_released(
    registry: StoreDriver, state: str
) -> None:
    lost, other = analysed(), analysed(OTHER_HASH)
    await registry.reserve("fs:ensure", lost)
    registry.now += LAPSES_AFTER
    with pytest.raises(QueryFailed, match="the gateway does not answer"):
        await registry.reserve("fs:ensure", other)
    registry.outcomes[lost.workflow_id] = WorkflowOutcome.model_validate({"state": state})
    assert (await registry.reserve("fs:ensure", other)).purpose == "create"


async def test_a_lapsed_reservation_of_a_workflow_that_goes_on_is_kept(
    registry: StoreDriver,
) -> None:
    waiting = analysed()
    await registry.reserve("fs:ensure", waiting)
    registry.outcomes[waiting.workflow_id] = WorkflowOutcome(state="under_way")
    for _ in range(3):
        registry.now += LAPSES_AFTER
        await registry.naming.look_at_lapsed()
    assert "is reserved for" in await refusal(registry, "fs:ensure", analysed(OTHER_HASH))
    assert await registry.settle(waiting) == "fs:ensure"


async def test_what_a_dead_gateway_did_not_tell_is_found_out(registry: StoreDriver) -> None:
    done, unknown = analysed(), analysed(OTHER_HASH)
    await registry.reserve("fs:ensure", done)
    await registry.reserve("fs:other", unknown)
    registry.outcomes[done.workflow_id] = WorkflowOutcome(state="succeeded")
    await registry.naming.look_at_lapsed()
    assert [name for name in await registry.names() if ":" in name] == []
    registry.now += LAPSES_AFTER
    await registry.naming.look_at_lapsed()
    assert (await registry.resolve("fs:ensure")).code_hash == HASH
    registry.outcomes[unknown.workflow_id] = WorkflowOutcome(state="under_way")
    assert "is reserved for" in await refusal(registry, "fs:other", analysed(SIMILAR_HASH))


async def test_a_name_that_was_given_and_not_said_is_said_later(registry: StoreDriver) -> None:
    analysis = analysed()
    await registry.reserve("fs:ensure", analysis)
    registry.is_away = True
    with pytest.raises(BusUnavailable):
        await registry.settle(analysis)
    assert (await registry.resolve("fs:ensure")).named
    registry.is_away = False
    assert await registry.settle(analysis) == "fs:ensure"
    assert changes(registry.published)[-1] == ("fs:ensure", "named")
    assert (await registry.resolve("fs:ensure")).version == 1


async def test_scopes_have_names_of_their_own(registry: StoreDriver) -> None:
    await registry.named("fs:ensure", analysed())
    theirs = analysed(OTHER_HASH, scope=ELSEWHERE)
    await registry.named("fs:ensure", theirs)
    assert (await registry.resolve("fs:ensure")).code_hash == HASH
    assert (await registry.resolve("fs:ensure", ELSEWHERE)).code_hash == OTHER_HASH


@pytest.mark.parametrize(
    ("name", "why"), [("dns:look", "is reserved"), ("fs:" + "a" * 60, "is too long by")]
)
async def test_ac01_what_is_no_name_is_told(registry: StoreDriver, name: str, why: str) -> None:
    with pytest.raises(QueryFailed, match=why) as refused:
        await registry.reserve(name, analysed())
    assert refused.value.code == "invalid"


async def test_code_that_is_not_what_its_hash_says_reserves_nothing(
    registry: StoreDriver,
) -> None:
    forged = analysed().model_copy(update={"code": f"return 1;// {OTHER_HASH}"})
    with pytest.raises(QueryFailed, match="the code's hash is") as refused:
        await registry.reserve("fs:ensure", forged)
    assert refused.value.code == "invalid"
    assert (await registry.reserve("fs:ensure", analysed(SIMILAR_HASH))).purpose == "create"
