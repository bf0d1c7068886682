"""Merging: one capability made of several, on both kinds of store (AC14)."""

from uuid import uuid4

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.dns import Rename, SetVisibility
from pml_common.contracts.merging import MergeCapabilities
from pml_common.contracts.scope import Scope
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_merge import on_merge_capabilities
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import AUTHOR, SCOPE
from services.registry.tests.support.curation_driver import CurationDriver
from services.registry.tests.support.merge_driver import MergeDriver
from services.registry.tests.support.store_driver import OWNER, changes
from services.registry.tests.support.stores import Stores, stores_on, version_keys

pytestmark = pytest.mark.integration

READ = "return await mcp.fs.read({ path: args.path });"
COUNT = "const found = await mcp.fs.count({ text: args.content });\nreturn { found };"
SHOUT = "return args.content.toUpperCase() + '!';"


@pytest.fixture
async def merges(curation: CurationDriver, stores: Stores, embedder: Embedder) -> MergeDriver:
    """Two capabilities that fit: `notes:read` and `text:count`."""
    stores = stores_on(stores.pools, version_keys(hashing=curation.hashing))
    driver = MergeDriver(curation, stores, embedder)
    await driver.start()
    await driver.ran("notes:read", READ, "read a note")
    await driver.ran("text:count", COUNT, "count words")
    curation.base.published.clear()
    return driver


async def test_ac14_a_merge_is_a_capability_that_passes_each_result_on(merges: MergeDriver) -> None:
    made = await merges.merge("notes:read", "text:count@1")
    assert made.record.code == (
        'const step1 = await mcp.call("cap:notes:read@1", { path: args.path });\n'
        'const step2 = await mcp.call("cap:text:count@1", { content: step1.content });\n'
        "return step2;"
    )
    assert (made.record.name, made.record.version, made.record.owner) == ("notes:count", 1, AUTHOR)
    assert made.record.parameters_schema["required"] == ["path"]
    assert made.record.description == "read a note, then count words"
    assert set(made.record.tools_used) == {"fs:read", "fs:count"}
    base = merges.curation.base
    sources = [(await base.whois(name)).fqdn for name in ("notes:read", "text:count")]
    assert made.merged_from == tuple(f"{fqdn}@1" for fqdn in sources)
    whois = await base.whois("notes:count")
    assert (whois.merged_from, whois.record.signature is None) == (made.merged_from, False)
    assert (await base.whois("notes:read")).merged_from == ()
    newest = (await base.history("notes:count")).entries[0]
    assert (newest.change, newest.principal) == ("named", AUTHOR)
    assert newest.details["merged_from"] == [*made.merged_from]
    assert changes(base.published)[1:] == [("notes:count", "named")]


async def test_a_merge_is_listed_once_a_run_of_it_has_succeeded(merges: MergeDriver) -> None:
    made = await merges.merge("notes:read", "text:count")
    assert not made.record.listed
    analysis = await merges.analysed(made.record.code)
    assert analysis.capability.capability_id == made.record.capability_id
    await merges.curation.learned(analysis)
    assert (await merges.curation.base.resolve("notes:count")).listed


async def test_a_repeated_request_makes_one_record(merges: MergeDriver) -> None:
    request_id = uuid4()
    first = await merges.merge("notes:read", "text:count", request_id=request_id)
    await merges.curation.base.change("notes:read", SetVisibility(visibility="private"))
    await merges.curation.base.change("notes:count", Rename(name="notes:total"))
    again = await merges.merge("notes:read", "text:count", request_id=request_id)
    assert again.record.record_id == first.record.record_id
    assert (again.record.name, again.merged_from) == ("notes:total", first.merged_from)
    plan = await merges.plan("notes:read", "text:count")
    query = MergeCapabilities(
        scope=SCOPE,
        principal=AUTHOR,
        request_id=request_id,
        name="notes:count",
        sources=("notes:read", "text:count"),
        analysis=await merges.analysed(plan.code),
    )
    assert (await on_merge_capabilities(query, merges.merging)).record == again.record
    assert (await merges.curation.base.history("notes:total")).entries[0].change == "renamed"


async def test_the_versions_are_those_of_the_merge_for_ever(merges: MergeDriver) -> None:
    await merges.merge("notes:read", "text:count")
    other = await merges.analysed("return await mcp.fs.list({});")
    await merges.curation.reserve("text:count", other, update=True)
    await merges.curation.base.settle(other)
    after = await merges.curation.base.resolve("notes:count")
    assert '"cap:text:count@1"' in after.code
    (described,) = await merges.curation.base.describe("text:count@1")
    assert described.capability is not None
    assert described.capability.code == COUNT


async def test_capabilities_that_do_not_fit_are_refused_with_the_property(
    merges: MergeDriver,
) -> None:
    await merges.ran("text:sum", "return await mcp.fs.count({ text: args.text });")
    why = (
        r"they do not fit: cap:text:count@1 takes content as string, and cap:text:sum@1 gives "
        r"number; give `code` that joins them"
    )
    with pytest.raises(QueryFailed, match=why) as refused:
        await merges.plan("text:sum", "text:count")
    assert refused.value.code == "invalid"
    with pytest.raises(QueryFailed, match=r"text:gone.*did you mean"):
        await merges.plan("notes:read", "text:gone")


async def test_what_cannot_be_checked_is_said(merges: MergeDriver) -> None:
    await merges.ran("notes:list", "return await mcp.fs.list({});")
    plan = await merges.plan("notes:list", "text:count")
    assert plan.code.splitlines()[1].endswith('mcp.call("cap:text:count@1", step1);')
    (notice,) = plan.notices
    assert notice.startswith("the result of cap:notes:list@1 is not known")


async def test_given_code_must_call_what_it_is_merged_from(merges: MergeDriver) -> None:
    code = 'const { content } = await mcp.call("cap:notes:read@1", { path: args.path });\n'
    with pytest.raises(QueryFailed, match=r'add mcp.call\("cap:text:count@1", …\)'):
        await merges.merge("notes:read", "text:count", code=f"{code}return content;")
    both = f"{code}return (await capabilities.text_count({{ content }})).found;"
    made = await merges.merge("notes:read", "text:count", code=both)
    assert made.record.code == both
    (notice,) = made.notices
    assert notice.startswith("the code calls text:count without a version")


async def test_a_held_name_and_a_program_that_has_one_are_refused(merges: MergeDriver) -> None:
    with pytest.raises(QueryFailed, match=r"notes:read .* exists already: choose another name"):
        await merges.merge("notes:read", "text:count", name="notes:read")
    await merges.merge("notes:read", "text:count")
    with pytest.raises(QueryFailed, match=r"this program is notes:count \(.*\) of agent-7 already"):
        await merges.merge("notes:read", "text:count", name="notes:total")
    with pytest.raises(QueryFailed, match="reserved") as refused:
        await merges.merge("notes:read", "text:count", name="cap:total")
    assert refused.value.code == "invalid"


async def test_a_private_source_is_found_by_its_owner_alone(merges: MergeDriver) -> None:
    await merges.curation.base.change("notes:read", SetVisibility(visibility="private"))
    with pytest.raises(QueryFailed, match="no capability 'notes:read'"):
        await merges.plan("notes:read", "text:count", principal="agent-8")
    assert (await merges.merge("notes:read", "text:count")).record.owner == AUTHOR


async def test_a_public_record_of_another_organisation_is_merged_by_its_scope(
    merges: MergeDriver,
) -> None:
    other = Scope(org="globex", project="tools")
    await merges.ran("text:shout", SHOUT, scope=other)
    await merges.curation.base.change(
        "text:shout", SetVisibility(visibility="public"), Viewer(other, AUTHOR)
    )
    made = await merges.merge("notes:read", "cap:globex.tools:text:shout", name="notes:shout")
    assert 'mcp.call("cap:globex.tools:text:shout@1", { content: step1.content })' in (
        made.record.code
    )
    assert made.merged_from[1].startswith("globex.tools.text.shout.")


async def test_an_analysis_of_another_scope_or_program_is_refused(merges: MergeDriver) -> None:
    plan = await merges.plan("notes:read", "text:count")
    good = await merges.analysed(plan.code)

    async def registered(analysis: ExecutionAnalyzed) -> None:
        query = MergeCapabilities(
            scope=SCOPE,
            principal=OWNER.principal or "",
            request_id=uuid4(),
            name="notes:count",
            sources=("notes:read", "text:count"),
            analysis=analysis,
        )
        await on_merge_capabilities(query, merges.merging)

    elsewhere = good.model_copy(update={"scope": Scope(org="globex", project="tools")})
    with pytest.raises(QueryFailed, match=r"the analysis is of no program of acme\.webapp"):
        await registered(elsewhere)
    with pytest.raises(QueryFailed, match="the code's hash is"):
        await registered(good.model_copy(update={"code": READ}))
    await registered(good)
