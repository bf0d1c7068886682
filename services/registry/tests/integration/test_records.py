"""Records: what is known of them, and changes to them;."""

import contextlib
from uuid import uuid4

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.dns import (
    Fork,
    LabelRecord,
    Rename,
    SetVisibility,
    TagVersion,
    Transfer,
    Unyank,
    Yank,
)
from pml_common.contracts.scope import Scope
from pml_registry.domain.visibility import Viewer
from services.registry.tests.support.builders import (
    AUTHOR,
    ELSEWHERE,
    HASH,
    OTHER_HASH,
    SCOPE,
    SIMILAR_HASH,
    analysed,
    learning_update,
)
from services.registry.tests.support.store_driver import OWNER, StoreDriver, changes

pytestmark = pytest.mark.integration

COLLEAGUE = Viewer(SCOPE, "agent-8")
NEIGHBOUR = Viewer(Scope(org="acme", project="shop"), "agent-8")
STRANGER = Viewer(ELSEWHERE, "agent-9")
ADMIN = Viewer(SCOPE, "root", is_admin=True)


async def test_ac11_a_record_has_all_that_is_known_of_it(known: StoreDriver) -> None:
    await known.learned(learning_update(3), learning_update(1, code_hash=SIMILAR_HASH))
    whois = await known.whois("fs:ensure")
    record = whois.record
    org, project, namespace, action, digits = whois.fqdn.split(".")
    assert (org, project, namespace, action) == ("acme", "webapp", "fs", "ensure")
    assert record.record_id.hex.startswith(digits)
    assert (record.created_by, record.owner, record.visibility) == (AUTHOR, AUTHOR, "project")
    assert (record.version, record.version_tag) == (2, "v1.1.0")
    assert [(each.version, each.usage.count) for each in whois.versions] == [(2, 1), (1, 3)]
    assert (whois.usage.counts, whois.usage.count, whois.usage.success_count) == ("version", 1, 1)
    total = whois.record_usage
    assert total is not None
    assert (total.counts, total.count, total.success_count) == ("record", 4, 4)


async def test_ac12_lookup_resolves_names_and_fqdns(known: StoreDriver) -> None:
    found = await known.lookup("cap:fs:ensure")
    assert (found.name, found.version, found.found_in) == ("fs:ensure", 2, "project")
    by_fqdn = await known.lookup(f"{found.fqdn}@1")
    assert (by_fqdn.record_id, by_fqdn.version) == (found.record_id, 1)
    scoped = await known.lookup("cap:acme.webapp:fs:ensure@v1.1.0")
    assert scoped.version == 2
    assert (await known.lookup(str(found.record_id))).fqdn == found.fqdn
    for wrong, code in (
        ("fs:insure", "not_found"),
        (f"{found.fqdn[:-4]}0000", "not_found"),
        ("fs:ensure@9", "not_found"),
        ("ensure", "invalid"),
        ("fs:ensure@first", "invalid"),
    ):
        with pytest.raises(QueryFailed) as failed:
            await known.lookup(wrong)
        assert failed.value.code == code


async def test_ac10_a_former_name_leads_to_the_record_for_ever(known: StoreDriver) -> None:
    fqdn = (await known.lookup("fs:ensure")).fqdn
    renamed = await known.change("fs:ensure", Rename(name="fs:assure"))
    assert (renamed.record.name, renamed.record.aliases[0]) == ("fs:assure", "fs:ensure")
    assert changes(known.published) == [("fs:assure", "renamed")]
    found = await known.lookup("fs:ensure")
    assert found.notices == ("fs:ensure was renamed to fs:assure; use the new name",)
    assert (await known.lookup("fs:assure")).notices == ()
    assert found.fqdn.split(".")[-1] == fqdn.split(".")[-1]
    assert (await known.lookup(fqdn)).record_id == found.record_id
    assert await known.resolved_name("fs_ensure") == "fs:assure"
    with pytest.raises(QueryFailed, match="fs:ensure leads to fs:assure"):
        await known.reserve("fs:ensure", analysed(OTHER_HASH))
    back = await known.change("fs:assure", Rename(name="fs:ensure"))
    assert (back.record.name, "fs:assure" in back.record.aliases) == ("fs:ensure", True)


async def test_a_name_of_another_record_cannot_be_had(known: StoreDriver) -> None:
    await known.named("fs:other", analysed(OTHER_HASH))
    with pytest.raises(QueryFailed, match=r"fs:other .* of agent-7, which exists already"):
        await known.change("fs:ensure", Rename(name="fs:other"))
    with pytest.raises(QueryFailed, match="the namespace 'dns' is reserved"):
        await known.change("fs:ensure", Rename(name="dns:other"))
    waiting = analysed("beef" * 16)
    await known.reserve("fs:waiting", waiting)
    with pytest.raises(QueryFailed, match=f"reserved for workflow {waiting.workflow_id}"):
        await known.change("fs:ensure", Rename(name="fs:waiting"))
    with pytest.raises(QueryFailed, match="choose another name"):
        await known.change("fs:ensure", Fork(name="fs:other"))


async def test_a_tag_is_on_one_version_and_moves(known: StoreDriver) -> None:
    tagged = await known.change("fs:ensure@1", TagVersion(version_tag="v1.1.0"))
    assert tagged.changed
    found = await known.lookup("fs:ensure@v1.1.0")
    assert found.version == 1
    assert [each.version_tag for each in (await known.whois("fs:ensure")).versions] == [
        None,
        "v1.1.0",
    ]
    again = await known.change("fs:ensure@1", TagVersion(version_tag="v1.1.0"))
    assert not again.changed


async def test_a_version_that_is_named_by_its_id_is_the_one_that_changes(
    known: StoreDriver,
) -> None:
    first = (await known.resolve("fs:ensure@1")).capability_id
    await known.change(str(first), Yank(reason="old"))
    newest, oldest = (await known.whois("fs:ensure")).versions
    assert (newest.yanked_reason, oldest.yanked_reason) == (None, "old")


async def test_a_yanked_version_is_skipped_and_found_exactly(known: StoreDriver) -> None:
    await known.change("fs:ensure@2", Yank(reason="deletes too much"))
    assert (await known.lookup("fs:ensure")).version == 1
    exactly = await known.lookup("fs:ensure@2")
    assert exactly.notices == ("fs:ensure: version 2 is yanked: deletes too much",)
    (called,) = await known.describe("fs:ensure@2")
    assert called.notices == exactly.notices
    await known.change("fs:ensure@1", Yank(reason="too slow"))
    only = await known.lookup("fs:ensure")
    assert (only.version, "too slow" in only.notices[0] or only.version == 2) == (2, True)
    await known.change("fs:ensure@1", Unyank())
    assert (await known.lookup("fs:ensure")).version == 1
    nothing = await known.change("fs:ensure@1", Unyank())
    assert not nothing.changed


async def test_who_sees_a_record(known: StoreDriver) -> None:
    async def seen_by(viewer: Viewer) -> str | None:
        with contextlib.suppress(QueryFailed):
            return (await known.lookup("fs:ensure", viewer)).found_in
        with pytest.raises(QueryFailed, match="no capability 'fs:ensure'"):
            await known.lookup("fs:ensure", viewer)
        return None

    everyone = (Viewer(SCOPE, AUTHOR), COLLEAGUE, NEIGHBOUR, STRANGER)
    for visibility, places in (
        ("private", ["project", None, None, None]),
        ("project", ["project", "project", None, None]),
        ("org", ["project", "project", "org", None]),
        ("public", ["project", "project", "org", "public"]),
    ):
        wanted = SetVisibility.model_validate({"visibility": visibility})
        await known.change("fs:ensure", wanted)
        assert [await seen_by(viewer) for viewer in everyone] == places
        page = await known.query(COLLEAGUE)
        assert page.total == (0 if visibility == "private" else 1)
        assert (await known.query(STRANGER, reach="public")).total == (visibility == "public")


async def test_the_nearest_record_is_meant(known: StoreDriver) -> None:
    await known.change("fs:ensure", SetVisibility(visibility="public"))
    theirs = analysed(scope=STRANGER.scope)
    await known.named("fs:ensure", theirs)
    assert (await known.lookup("fs:ensure", STRANGER)).scope == STRANGER.scope
    far = await known.lookup("cap:acme.webapp:fs:ensure", STRANGER)
    assert (far.scope, far.found_in) == (SCOPE, "public")
    assert (await known.lookup("fs:ensure", NEIGHBOUR)).found_in == "org"


async def test_only_its_owner_or_an_admin_changes_a_record(known: StoreDriver) -> None:
    await known.change("fs:ensure", SetVisibility(visibility="public"))
    for viewer in (COLLEAGUE, NEIGHBOUR, STRANGER):
        with pytest.raises(QueryFailed, match="fork it to have one of your own"):
            await known.change("fs:ensure", Rename(name="fs:mine"), viewer)
    given = await known.change("fs:ensure", Transfer(owner="agent-8"), ADMIN)
    assert given.record.owner == "agent-8"
    renamed = await known.change("fs:ensure", Rename(name="fs:mine"), COLLEAGUE)
    assert renamed.record.name == "fs:mine"


async def test_a_private_record_can_be_given_away(known: StoreDriver) -> None:
    await known.change("fs:ensure", SetVisibility(visibility="private"))
    given = await known.change("fs:ensure", Transfer(owner="agent-8"))
    assert given.record.owner == "agent-8"
    with pytest.raises(QueryFailed, match="no capability"):
        await known.lookup("fs:ensure")


async def test_ac14_a_fork_is_a_record_of_its_own(known: StoreDriver) -> None:
    source = await known.lookup("fs:ensure@1")
    await known.change("fs:ensure", SetVisibility(visibility="public"))
    for viewer in (COLLEAGUE, STRANGER):
        made = await known.change("cap:acme.webapp:fs:ensure@1", Fork(name="fs:mine"), viewer)
        record = made.record
        assert (record.name, record.version, record.owner) == ("fs:mine", 1, viewer.principal)
        assert record.forked_from == f"{source.fqdn}@1"
        assert record.scope == viewer.scope
        assert record.code_hash == HASH
        assert (await known.lookup("fs:mine", viewer)).record_id == record.record_id
    ours = await known.whois("fs:mine", COLLEAGUE)
    assert ours.record.record_id != source.record_id
    assert ours.record.capability_id == source.capability_id
    theirs = await known.whois("fs:mine", STRANGER)
    assert theirs.record.capability_id != source.capability_id
    assert theirs.usage.count == 0


async def test_ac13_versions_are_selected(known: StoreDriver) -> None:
    numbers = {
        selector: (await known.lookup(f"fs:ensure{selector}")).version
        for selector in ("", "@latest", "@1", "@v1", "@v1.1", "@v1.1.0")
    }
    assert numbers == {"": 2, "@latest": 2, "@1": 1, "@v1": 2, "@v1.1": 2, "@v1.1.0": 2}
    today = (await known.whois("fs:ensure")).versions[0].created_at.date()
    assert (await known.lookup(f"fs:ensure@{today}")).version == 2
    with pytest.raises(QueryFailed, match="there are: 2 "):
        await known.lookup("fs:ensure@2020-01-01")


async def test_ac12_history_is_complete_and_ordered(known: StoreDriver) -> None:
    await known.change("fs:ensure", LabelRecord(add=("files", "safe")))
    await known.change("fs:ensure", LabelRecord(remove=("safe",)))
    await known.change("fs:ensure@1", Yank(reason="old"))
    whole = await known.history("fs:ensure")
    assert [entry.change for entry in reversed(whole.entries)] == [
        "created",
        "named",
        "versioned",
        "labelled",
        "labelled",
        "yanked",
    ]
    assert [entry.sequence for entry in whole.entries] == [6, 5, 4, 3, 2, 1]
    versioned = whole.entries[3]
    assert (versioned.version, versioned.version_tag) == (2, "v1.1.0")
    assert versioned.diff is not None
    assert versioned.diff.splitlines()[:2] == ["--- fs:ensure@1", "+++ fs:ensure@2"]
    assert whole.entries[0].details == {"reason": "old"}
    pages: list[int] = []
    cursor: str | None = None
    for _ in range(3):
        page = await known.history("fs:ensure", limit=2, cursor=cursor)
        pages += [entry.sequence for entry in page.entries]
        cursor = page.next_cursor
    assert (pages, cursor) == ([6, 5, 4, 3, 2, 1], None)
    with pytest.raises(QueryFailed, match="the cursor is none of ours"):
        await known.history("fs:ensure", cursor="abc")


async def test_ac12_records_are_found_by_what_is_known_of_them(known: StoreDriver) -> None:
    other = analysed(OTHER_HASH, intent="draw 100% of it", principal="mira")
    await known.named("art:draw", other)
    await known.learned(learning_update(5, code_hash=OTHER_HASH))
    await known.change("art:draw", LabelRecord(add=("art", "fun")), Viewer(SCOPE, "mira"))
    cases: list[tuple[dict[str, object], list[str]]] = [
        ({}, ["art:draw", "fs:ensure"]),
        ({"sort": "name"}, ["art:draw", "fs:ensure"]),
        ({"sort": "date"}, ["art:draw", "fs:ensure"]),
        ({"created_by": "agent-*"}, ["fs:ensure"]),
        ({"namespace": "a?t"}, ["art:draw"]),
        ({"version_tag": "v1.*"}, ["fs:ensure"]),
        ({"tags": ("art", "fun")}, ["art:draw"]),
        ({"tags": ("art", "files")}, []),
        ({"visibility": "project", "text": "0% OF"}, ["art:draw"]),
        ({"text": "_"}, []),
        ({"visibility": "public"}, []),
    ]
    for filters, names in cases:
        page = await known.query(OWNER, **filters)
        assert [record.name for record in page.records] == names, filters
        assert (page.total, page.next_cursor) == (len(names), None)
    first = await known.query(limit=1)
    second = await known.query(limit=1, cursor=first.next_cursor)
    assert [page.records[0].name for page in (first, second)] == ["art:draw", "fs:ensure"]
    assert (first.total, second.total, second.next_cursor) == (2, 2, None)
    with pytest.raises(QueryFailed, match="the cursor is none of ours"):
        await known.query(cursor="e30")


async def test_unlisted_and_unnamed_records_are_found_on_request(known: StoreDriver) -> None:
    await known.analysed(analysed(OTHER_HASH))
    assert (await known.query()).total == 1
    assert (await known.query(include_unlisted=True)).total == 1
    (listed,), (bare,) = [
        (await known.query(include_parameters=included)).records for included in (True, False)
    ]
    assert listed.parameters_schema is not None
    assert bare.parameters_schema is None
    every = await known.query(include_unlisted=True, include_unnamed=True, sort="name")
    assert [record.name for record in every.records] == ["fs:ensure", "unnamed_c0de"]


async def test_a_repeated_request_changes_nothing(known: StoreDriver) -> None:
    request_id = uuid4()
    first = await known.change("fs:ensure", Rename(name="fs:assure"), request_id=request_id)
    await known.change("fs:assure", Rename(name="fs:insure"))
    again = await known.change("fs:ensure", Rename(name="fs:assure"), request_id=request_id)
    assert (first.changed, again.changed, again.record.name) == (True, True, "fs:insure")
    fork_id = uuid4()
    forks = [
        await known.change("fs:insure", Fork(name="fs:mine"), request_id=fork_id) for _ in "12"
    ]
    assert forks[0].record.record_id == forks[1].record.record_id
    assert (await known.history("fs:insure")).entries[0].sequence == 5


async def test_a_change_is_published_though_nats_was_away(known: StoreDriver) -> None:
    known.is_away = True
    await known.change("fs:ensure", Rename(name="fs:assure"))
    await known.change("fs:assure", LabelRecord(add=("files",)))
    assert known.published == []
    await known.service.publish_overdue()
    known.is_away = False
    await known.service.publish_overdue()
    await known.service.publish_overdue()
    assert changes(known.published) == [("fs:assure", "renamed"), ("fs:assure", "labelled")]


async def test_another_scopes_record_runs_under_an_id_of_ones_own(known: StoreDriver) -> None:
    await known.change("fs:ensure", SetVisibility(visibility="public"))
    references = "fs:ensure", "fs_ensure", "cap:acme.webapp:fs:ensure@1"
    described = await known.describe(*references, scope=STRANGER.scope)
    ids_ = [each.capability.capability_id for each in described if each.capability]
    assert len(ids_) == 3
    assert ids_[0] == ids_[1] != ids_[2]
    theirs = learning_update(1, code_hash=HASH, scope=STRANGER.scope)
    assert theirs.capability_id == ids_[2]
    await known.learned(theirs)
    assert (await known.whois(str(ids_[2]), STRANGER)).usage.count == 1
    assert (await known.whois("fs:ensure@1")).versions[1].usage.count == 0


async def test_a_private_record_is_not_described_to_others(known: StoreDriver) -> None:
    await known.change("fs:ensure", SetVisibility(visibility="private"))
    assert await known.resolved_name("fs_ensure", principal=AUTHOR) == "fs:ensure"
    assert await known.resolved_name("fs_ensure", principal="agent-8") is None
    assert await known.resolved_name("fs_ensure", principal=None) == "fs:ensure"
