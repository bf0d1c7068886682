"""Curation; the criteria are those of Naming."""

import asyncio
from datetime import timedelta

import pytest

from pml_common.bus.errors import QueryFailed
from services.registry.tests.support.builders import SCOPE
from services.registry.tests.support.curation_driver import CurationDriver, FakeModel, program

pytestmark = pytest.mark.integration

READ = "return await mcp.fs.read({ path: args.path });"
DIFF = "const d = await mcp.git.diff({}); return d.files;"
WRITE = "await mcp.fs.write({ path: args.to, text: await mcp.fs.read({ path: args.from }) });"
ASK = "const c = await mcp.crm.lookup({ id: args.id }); return c.name;"
INTENT = "Read the settings file"


async def test_ac03_after_n_unnamed_names_are_suggested_and_stored(
    curation: CurationDriver,
) -> None:
    read = await curation.ran(READ, INTENT)
    await curation.curator.look(2)
    ids = [read.capability.capability_id]
    assert not await curation.store.suggested(SCOPE, ids)
    await curation.ran(DIFF, "Show the changes")
    await curation.curator.look(2)
    assert (await curation.store.suggested(SCOPE, ids))[ids[0]].name == "fs:read_settings_file"
    model = FakeModel({INTENT: "fs:other"})
    curation.ask(model)
    await curation.curator.look(2)
    assert model.asked == 0


async def test_a_scope_that_another_replica_curates_is_left_to_it(curation: CurationDriver) -> None:
    await curation.ran(READ, INTENT)
    now = curation.base.now
    until = now + timedelta(minutes=5)
    assert list(await curation.store.claim_uncurated(1, 10, now, until)) == [SCOPE]
    assert list(await curation.store.claim_uncurated(1, 10, now, until)) == []
    assert list(await curation.store.claim_uncurated(1, 10, until, until)) == [SCOPE]
    await curation.store.release(SCOPE)
    assert list(await curation.store.claim_uncurated(1, 10, now, until)) == [SCOPE]


async def test_ac04_suggest_returns_names_with_reasons_and_gives_none(
    curation: CurationDriver,
) -> None:
    read = await curation.ran(READ, INTENT, runs=9)
    await curation.ran(ASK, runs=2)
    found = await curation.curate()
    first, second = found.suggestions
    assert (first.capability_id, first.name, first.source) == (
        read.capability.capability_id,
        "fs:read_settings_file",
        "rules",
    )
    assert first.reasons[0] == "fs: uses fs:read"
    assert second.name == "crm:lookup"
    assert first.confidence > 0.8 > second.confidence
    assert (found.unnamed, found.given) == (2, ())
    assert (await curation.curate()).suggestions == found.suggestions
    (alone,) = (await curation.curate(namespace="crm")).suggestions
    assert alone == second
    assert (await curation.curate(min_usage=3)).suggestions == (first,)


async def test_ac04_auto_gives_the_names_that_are_sure_and_never_one_that_is_held(
    curation: CurationDriver,
) -> None:
    await curation.named("fs:read_settings_file", program(DIFF))
    await curation.reserve("fs:read_settings_file_2", program(ASK))
    read = await curation.ran(READ, INTENT, runs=9, principal="agent-9")
    await curation.ran(WRITE)
    found = await curation.curate("auto", min_confidence=0.75)
    (given,) = found.given
    assert given.capability_id == read.capability.capability_id
    assert given.name not in ("fs:read_settings_file", "fs:read_settings_file_2")
    record = await curation.base.resolve(given.name)
    assert (record.owner, record.named, record.listed) == ("agent-9", True, True)
    assert (len(found.suggestions), found.unnamed) == (1, 1)
    again = await curation.curate("auto", min_confidence=0.75)
    assert (again.given, again.suggestions) == ((), found.suggestions)


async def test_ac04_apply_gives_the_names_that_were_chosen(curation: CurationDriver) -> None:
    read, diff = await curation.ran(READ), await curation.ran(DIFF)
    ids = [each.capability.capability_id for each in (read, diff)]
    chosen = {ids[0]: "fs:load", ids[1]: "git:changes"}
    for _ in range(2):
        found = await curation.curate("apply", apply=chosen)
        assert {each.capability_id: each.name for each in found.given} == chosen
        assert (found.refused, found.unnamed) == ((), 0)
    assert (await curation.base.resolve("git:changes")).capability_id == ids[1]


async def test_ac04_names_are_validated_for_form_and_uniqueness(curation: CurationDriver) -> None:
    await curation.named("fs:load", program(DIFF))
    read = (await curation.ran(READ)).capability.capability_id
    failed = program(ASK)
    await curation.analysed(failed)
    named = (await curation.base.resolve("fs:load")).capability_id
    unknown = program(WRITE).capability.capability_id
    chosen = [(read, "Load it"), (read, "pml:load"), (read, "fs:load"), (named, "fs:other")]
    chosen += [(failed.capability.capability_id, "crm:ask"), (unknown, "fs:copy")]
    whys: list[str] = []
    for id_, name in chosen:
        (refused,) = (await curation.curate("apply", apply={id_: name})).refused
        whys.append(refused.why)
    assert "no colon" in whys[0]
    assert "reserved" in whys[1]
    assert "is other code" in whys[2]
    assert "it is fs:load already" in whys[3]
    assert "no run of it has succeeded" in whys[4]
    assert "no capability" in whys[5]


async def test_of_two_that_get_one_name_at_once_one_has_it(curation: CurationDriver) -> None:
    ids = [(await curation.ran(code)).capability.capability_id for code in (READ, DIFF, ASK)]
    found = await asyncio.gather(*(curation.curate("apply", apply={id_: "fs:load"}) for id_ in ids))
    assert sorted(len(each.given) for each in found) == [0, 0, 1]


async def test_a_model_names_where_its_names_are_valid(curation: CurationDriver) -> None:
    await curation.ran(READ, INTENT, runs=3)
    await curation.ran(DIFF, "Show the changes", runs=2)
    await curation.ran(ASK, "Who is it")
    curation.ask(FakeModel({INTENT: "fs:load_settings", "Show the changes": "no name"}))
    found = (await curation.curate()).suggestions
    assert [(each.name, each.source) for each in found] == [
        ("fs:load_settings", "model"),
        ("git:show_changes", "rules"),
        ("crm:who", "rules"),
    ]


async def test_a_suggested_name_that_was_taken_since_is_replaced(curation: CurationDriver) -> None:
    await curation.ran(READ, INTENT)
    (first,) = (await curation.curate()).suggestions
    await curation.named(first.name, program(DIFF))
    (second,) = (await curation.curate()).suggestions
    assert second.name != first.name


async def test_variants_are_suggested_to_be_merged_and_saved_as_one(
    curation: CurationDriver,
) -> None:
    codes = [f"return await mcp.fs.read({{ path: '{name}' }});" for name in "abc"]
    variants = [await curation.ran(code) for code in codes]
    ids = tuple(each.capability.capability_id for each in variants)
    (merge,) = (await curation.curate()).merges
    assert merge.capability_ids[0] == ids[0]
    assert ({*merge.capability_ids}, merge.parameters) == ({*ids}, ("path",))
    lifted = await curation.lift(merge.name)
    assert lifted.code == "return await mcp.fs.read({ path: args.path ?? 'a' });"
    assert {each.capability_id: each.arguments["path"] for each in lifted.variants} == dict(
        zip(ids, "abc", strict=True)
    )
    analysis = program(lifted.code)
    for purpose in ("create", "use"):
        saved = await curation.save("fs:read_any", reference=merge.name, lifted=analysis)
        assert (saved.purpose, saved.version) == (purpose, 1)
    assert await curation.base.names(unlisted=False) == ["fs:read_any"]
    assert (await curation.base.resolve(merge.name)).capability_id == ids[0]
    await curation.learned(variants[0], 5)
    await curation.ran(codes[0].replace("'a'", "'d'"))
    assert await curation.base.names(unlisted=False) == ["fs:read_any"]
    assert (await curation.curate()).merges == ()


async def test_what_was_not_lifted_is_not_saved_as_it(curation: CurationDriver) -> None:
    codes = [f"return await mcp.fs.read({{ path: '{name}' }});" for name in "ab"]
    first, _ = [await curation.ran(code) for code in codes]
    reference = str(first.capability.capability_id)
    with pytest.raises(QueryFailed, match="lift it again"):
        await curation.save("fs:read_any", reference=reference, lifted=program(WRITE))
    alone = await curation.ran(DIFF)
    with pytest.raises(QueryFailed, match="cannot be lifted: it takes two"):
        await curation.lift(str(alone.capability.capability_id))
    with pytest.raises(QueryFailed, match="cannot be lifted"):
        await curation.save(
            "git:d", reference=str(alone.capability.capability_id), lifted=program(WRITE)
        )


async def test_a_program_is_saved_by_its_workflow_or_its_id(curation: CurationDriver) -> None:
    read = program(READ, principal="agent-9")
    await curation.analysed(read)
    for purpose in ("create", "use"):
        saved = await curation.save("fs:load", workflow_id=curation.ended(read, "succeeded"))
        assert (saved.purpose, saved.capability_id) == (purpose, read.capability.capability_id)
    record = await curation.base.resolve("fs:load")
    assert (record.owner, record.listed) == ("agent-7", True)
    diff = await curation.ran(DIFF)
    id_ = str(diff.capability.capability_id)
    with pytest.raises(QueryFailed, match="is other code"):
        await curation.save("fs:load", reference=id_)
    saved = await curation.save("fs:load", reference=id_, update=True, version_tag="v2.0.0")
    assert (saved.purpose, saved.version) == ("version", 2)
    alias = await curation.save("git:d", reference=id_)
    assert (alias.purpose, alias.version) == ("alias", 2)


async def test_what_has_not_succeeded_is_not_saved(curation: CurationDriver) -> None:
    read = program(READ)
    await curation.analysed(read)
    with pytest.raises(QueryFailed, match="is failed: only success is saved"):
        await curation.save("fs:load", workflow_id=curation.ended(read, "failed"))
    with pytest.raises(QueryFailed, match="has succeeded: run it first"):
        await curation.save("fs:load", reference=str(read.capability.capability_id))
    await curation.ran(READ)
    with pytest.raises(QueryFailed, match="is reserved"):
        await curation.save("pml:load", reference=str(read.capability.capability_id))
