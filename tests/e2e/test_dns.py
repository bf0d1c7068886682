"""The capability DNS on the whole stack: from programs, over MCP and from the command line."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

PML = Path(sys.executable).with_name("pml")


async def _named(harness: StackHarness, name: str, code: str, **more: object) -> None:
    answer = await harness.execute(code, name=name, **more)
    await harness.has_name(answer, name)


async def _get(harness: StackHarness, what: str, **params: str) -> dict[str, Any]:
    answer = await harness.http.get(f"/api/dns/{what}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _pml(harness: StackHarness, *words: str) -> tuple[int, str, str]:
    """Run `pml dns`; return exit code, output and error output."""
    process = await asyncio.create_subprocess_exec(
        PML,
        "dns",
        *words,
        "--url",
        harness.stack.url,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"COLUMNS": "200", "NO_COLOR": "1"},
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def _peek(what: str) -> str:
    return f"await mcp.counting.peek({{ path: '{what}' }});\nreturn '{what}';"


async def test_a_program_looks_a_name_up_without_asking(harness: StackHarness) -> None:
    await _named(harness, "dnsp:look", _peek("look"))
    answer = await harness.http.post(
        "/api/execute",
        json={
            "code": "const found = await mcp.dns.lookup({ name: 'dnsp:look' });\n"
            "const all = await mcp.call('dns:query', { namespace: 'dnsp', sort: 'name' });\n"
            "return { version: found.version, fqdn: found.fqdn,\n"
            "  names: all.records.map((each) => each.name) };"
        },
    )
    body = answer.json()
    assert body["status"] == "success", body
    assert body["result"]["version"] == 1
    assert body["result"]["fqdn"].split(".")[2:4] == ["dnsp", "look"]
    assert "dnsp:look" in body["result"]["names"]


async def test_ac15_a_program_that_renames_asks_first_and_renames_once(
    harness: StackHarness,
) -> None:
    await _named(harness, "dnsr:before", _peek("rename"))
    code = "return await mcp.dns.rename({ name: 'dnsr:before', new_name: 'dnsr:after' });"
    asked = (await harness.http.post("/api/execute", json={"code": code})).json()
    assert asked["status"] == "approval_required", asked
    assert asked["approval"]["tools"] == ["dns:rename"]
    assert (await _get(harness, "lookup", name="dnsr:before"))["name"] == "dnsr:before"
    await harness.approve(asked["workflow_id"])
    ended: dict[str, Any] = await harness.end_of(asked["workflow_id"])
    assert ended["status"] == "success", ended
    assert ended["result"]["record"]["name"] == "dnsr:after"
    found = await _get(harness, "lookup", name="dnsr:before")
    assert found["name"] == "dnsr:after"
    assert any("dnsr:after" in notice for notice in found["notices"])
    changes = [
        each["change"] for each in (await _get(harness, "history", name="dnsr:after"))["entries"]
    ]
    assert changes.count("renamed") == 1


async def test_a_version_is_for_what_its_run_said_until_its_owner_says_otherwise(
    harness: StackHarness,
) -> None:
    taken, program = _peek("described"), "return { how: 'described', twice: [1, 2] };"
    await _named(harness, "dnsd:taken", taken)
    refused = await harness.execute(program, name="dnsd:taken", intent="zzz nonsense")
    assert refused["status"] == "error", refused
    answer = await harness.execute(program, name="dnsd:twice", intent="say it twice over")
    await harness.has_name(answer, "dnsd:twice")
    found = await _get(harness, "whois", name="dnsd:twice")
    assert found["record"]["description"] == "say it twice over"
    update = await harness.execute(
        f"// again\n{program}".replace("2]", "3]"), name="dnsd:twice", update=True
    )
    assert update["status"] == "success", update
    found = await _get(harness, "whois", name="dnsd:twice")
    assert [each["description"] for each in found["versions"]] == ["say it twice over"] * 2
    code, out, err = await _pml(harness, "describe", "dnsd:twice", "say one and three")
    assert (code, "is described: say one and three" in out) == (0, True), err
    discovered = await harness.http.post("/api/discover", json={"intent": "say one and three"})
    hits = {each["name"]: each for each in discovered.json()["hits"]}
    assert hits["dnsd:twice"]["description"] == "say one and three"


async def test_ac05_ac15_an_mcp_client_lists_capabilities_and_uses_the_dns(
    harness: StackHarness,
) -> None:
    await _named(harness, "dnsm:listed", _peek("listed"))
    async with Client(f"{harness.stack.url}/mcp") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert (tools["dns_lookup"].meta or {})["pml/tool"] == "dns:lookup"
        listed = await client.call_tool("pml_list_capabilities", {"namespace": "dnsm"})
        assert listed.structured_content is not None
        (one,) = listed.structured_content["capabilities"]
        assert (one["name"], one["version"], one["runs"]) == ("dnsm:listed", 1, one["runs"])
        assert "fqdn" not in one
        found = await client.call_tool("dns_lookup", {"name": "dnsm:listed"})
        assert not found.is_error
        asked = await client.call_tool("dns:yank", {"name": "dnsm:listed", "reason": "no"})
        assert asked.is_error
        assert "a person must approve it first" in str(asked.content)
    assert (await _get(harness, "whois", name="dnsm:listed"))["record"]["yanked_reason"] is None


async def test_the_command_reads_and_changes_records(harness: StackHarness) -> None:
    await _named(harness, "dnsc:read", _peek("one"))
    await _named(
        harness, "dnsc:read", _peek("two"), update=True, change_summary="Look at another file"
    )
    code, out, _ = await _pml(harness, "lookup", "dnsc:read", "--short")
    assert code == 0
    assert out.strip().endswith("@2")
    assert (await _pml(harness, "tag", "dnsc:read@1", "v1.0.0"))[0] == 0
    assert (await _pml(harness, "tag", "dnsc:read", "--add", "io", "--add", "demo"))[0] == 0
    assert (await _pml(harness, "yank", "dnsc:read@2", "--reason", "wrong file"))[0] == 0
    code, out, err = await _pml(harness, "whois", "dnsc:read")
    assert code == 0, err
    assert "dnsc:read 1 (v1.0.0) | 2 versions" in out
    assert "yanked: wrong file" in out
    assert "demo, io" in out
    code, out, err = await _pml(harness, "history", "dnsc:read", "--limit", "2")
    assert code == 0, err
    assert "yanked" in out
    cursor = err.split("--cursor ")[1].strip()
    code, out, err = await _pml(harness, "history", "dnsc:read", "--cursor", cursor)
    assert code == 0, err
    assert "-return 'one';" in out
    assert "+return 'two';" in out
    code, out, _ = await _pml(harness, "query", "--tag", "demo", "--json")
    assert [each["name"] for each in json.loads(out)["records"]] == ["dnsc:read"]
    assert (await _pml(harness, "fork", "dnsc:read@1", "dnsc:own"))[0] == 0
    code, _, err = await _pml(harness, "rename", "dnsc:own", "dnsc:read")
    assert code == 1
    assert "dnsc:read" in err
    code, _, err = await _pml(harness, "lookup", "dnsc:gone")
    assert code == 1
    assert "dnsc:gone" in err


async def test_ac14_capabilities_are_merged_run_and_refused_where_they_do_not_fit(
    harness: StackHarness,
) -> None:
    args = {"what": "a note"}
    peek = "return { what: args.what.toUpperCase() };"
    await _named(harness, "dnsj:peek", peek, args=args)
    look = "await mcp.counting.peek({ path: args.what });\nreturn 7;"
    await _named(harness, "dnsj:look", look, args=args)
    code, out, err = await _pml(harness, "merge", "dnsj:both", "dnsj:peek", "dnsj:look@1")
    assert code == 0, err
    assert "dnsj:both is made of local.default.dnsj.peek." in out
    ran = await harness.http.post(
        "/api/execute", json={"capability": "dnsj:both", "args": {"what": "merged"}}
    )
    assert (ran.json()["status"], ran.json()["result"]) == ("success", 7), ran.text
    whois = await _get(harness, "whois", name="dnsj:both")
    assert len(whois["merged_from"]) == 2
    assert {each["verified"] for each in whois["versions"]} == {False}
    assert all(each["key_id"] and each["signed_at"] for each in whois["versions"])
    code, _, err = await _pml(harness, "merge", "dnsj:none", "dnsj:look", "dnsj:peek")
    assert code == 1
    assert "cap:dnsj:peek@1 takes what as string, and cap:dnsj:look@1 gives number" in err
    program = (
        "return await mcp.dns.merge({ name: 'dnsj:third', sources: ['dnsj:both', 'dnsj:peek'],\n"
        "  code: `const n = await mcp.call('cap:dnsj:both@1', { what: args.what });\n"
        "return await mcp.call('cap:dnsj:peek@1', { what: String(n) });` });"
    )
    asked = (await harness.http.post("/api/execute", json={"code": program})).json()
    assert asked["status"] == "approval_required", asked
    assert asked["approval"]["tools"] == ["dns:merge"]
    await harness.approve(asked["workflow_id"])
    ended: dict[str, Any] = await harness.end_of(asked["workflow_id"])
    assert ended["status"] == "success", ended
    assert ended["result"]["record"]["name"] == "dnsj:third"


async def test_a_record_that_was_given_away_is_changed_by_an_admin_alone(
    harness: StackHarness,
) -> None:
    await _named(harness, "dnsa:mine", _peek("admin"))
    given = {"name": "dnsa:mine", "owner": "ada"}
    assert (await harness.http.post("/api/dns/transfer", json=given)).status_code == 200
    rename = {"name": "dnsa:mine", "new_name": "dnsa:ours"}
    refused = await harness.http.post("/api/dns/rename", json=rename)
    assert refused.status_code == 409
    assert "only its owner or an admin changes it" in refused.json()["error"]["message"]
    done = await harness.http.post("/api/dns/rename", json=rename, headers=harness.approver)
    assert (done.status_code, done.json()["record"]["name"]) == (200, "dnsa:ours"), done.text
    (newest, *_) = (await _get(harness, "history", name="dnsa:ours"))["entries"]
    assert newest["principal"].startswith("approver:")


async def test_ac04_names_are_suggested_over_mcp_and_given_on_approval(
    harness: StackHarness,
) -> None:
    code = "return { curated: await mcp.counting.peek({ path: 'curated' }) };"
    answer = await harness.execute(code, intent="look at what is curated")
    assert answer["status"] == "success", answer
    id_ = answer["capability_id"]
    async with Client(f"{harness.stack.url}/mcp") as client:

        async def suggestion() -> dict[str, Any] | None:
            found = await client.call_tool("pml_curate_capabilities", {})
            assert found.structured_content is not None, found
            of_ours = (
                each
                for each in found.structured_content["suggestions"]
                if each["capability_id"] == id_
            )
            return next(of_ours, None)

        suggested = await eventually(suggestion)
        assert suggested is not None
        assert suggested["reasons"]
        assert suggested["name"].startswith("counting:")
        names = [{"capability_id": id_, "name": "dnsu:curated"}]
        asked = await client.call_tool("pml_curate_capabilities", {"mode": "apply", "names": names})
        assert asked.is_error
        assert asked.structured_content is not None
    workflow_id = asked.structured_content["workflowId"]
    await harness.approve(workflow_id)
    ended: dict[str, Any] = await harness.end_of(workflow_id)
    assert ended["result"]["given"] == names, ended
    assert (await _get(harness, "lookup", name="dnsu:curated"))["capability_id"] == id_


async def test_a_program_is_saved_with_its_literals_made_parameters(harness: StackHarness) -> None:
    ids: list[str] = []
    for note in ("dnsv-one", "dnsv-two"):
        answer = await harness.execute(f"return await mcp.counting.peek({{ path: '{note}' }});")
        assert answer["status"] == "success", answer
        ids.append(str(answer["capability_id"]))

    async def learned() -> bool:
        found = [await harness.http.get(f"/api/capabilities/{each}") for each in ids]
        return all(one.is_success and one.json()["usage"]["success_count"] for one in found)

    await eventually(learned)
    program = (
        f"return await mcp.learn.save({{ name: 'dnsv:peek', capability: '{ids[0]}', lift: true }});"
    )
    asked = (await harness.http.post("/api/execute", json={"code": program})).json()
    assert asked["status"] == "approval_required", asked
    await harness.approve(asked["workflow_id"])
    ended: dict[str, Any] = await harness.end_of(asked["workflow_id"])
    assert ended["status"] == "success", ended
    assert ended["result"]["purpose"] == "create"
    assert ended["result"]["parameters"] == ["path"]
    record = (await _get(harness, "whois", name="dnsv:peek"))["record"]
    assert record["parameters_schema"]["properties"]["path"]["default"] == "dnsv-one"


async def test_a_change_under_one_key_is_made_once(harness: StackHarness) -> None:
    await _named(harness, "dnsk:first", _peek("key"))
    body, headers = {"name": "dnsk:first", "new_name": "dnsk:second"}, {"Idempotency-Key": "dnsk"}
    answers = [
        (await harness.http.post("/api/dns/rename", json=body, headers=headers)).json()
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert answers[0]["record"]["name"] == "dnsk:second"
