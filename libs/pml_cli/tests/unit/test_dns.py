"""`pml dns` against a scripted gateway."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from libs.pml_cli.tests.support.fakes import APPROVER, Gateway, pml

EXAMPLES = Path(__file__).parents[3] / "pml_common/examples"
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def reply(query: str) -> dict[str, Any]:
    """Return a golden answer of the registry, as the gateway passes it on."""
    return json.loads((EXAMPLES / f"qry.registry.{query}.v1.reply.json").read_text("utf-8"))


def asked(gateway: Gateway) -> tuple[str, dict[str, list[str]]]:
    """Return the path and the parameters of the one request that was made."""
    ((line, body),) = gateway.asked
    assert body is None
    parts = urlsplit(line.removeprefix("GET "))
    return parts.path, parse_qs(parts.query)


def test_lookup_shows_what_a_name_means(
    gateway: Gateway, monkeypatch: Patch, capsys: Capture
) -> None:
    found = {**reply("lookup-record"), "notices": ["fs:ensure is a former name"]}
    gateway.answers["GET /api/dns/lookup"] = (200, found)
    assert pml(monkeypatch, "dns", "lookup", "fs:ensure_file@v1") == 0
    assert asked(gateway) == ("/api/dns/lookup", {"name": ["fs:ensure_file@v1"]})
    printed = capsys.readouterr()
    lines = [line.split(maxsplit=1) for line in printed.out.splitlines()]
    assert ["version", "2 (v1.1.0)"] in [[one.strip() for one in line] for line in lines]
    assert "acme.webapp.fs.ensure_file.9f52" in printed.out
    assert "fs:ensure is a former name" in printed.err


def test_lookup_short_prints_one_word_for_scripts(
    gateway: Gateway, monkeypatch: Patch, capsys: Capture
) -> None:
    gateway.answers["GET /api/dns/lookup"] = (200, reply("lookup-record"))
    assert pml(monkeypatch, "dns", "lookup", "fs:ensure_file", "--short") == 0
    assert capsys.readouterr().out == "acme.webapp.fs.ensure_file.9f52@2\n"


def test_whois_shows_the_record_its_use_and_every_version(
    gateway: Gateway, monkeypatch: Patch, capsys: Capture
) -> None:
    found = reply("whois-record")
    old = {
        **found["versions"][0],
        "version": 1,
        "version_tag": None,
        "yanked_reason": "loses data",
        "usage": {"count": 0, "success_count": 0, "mean_duration_ms": 0},
    }
    found["versions"].append(old)
    found["versions"][0] |= {"verified": True}
    found["versions"][1] |= {"key_id": None}
    found["record"] |= {"tags": ["files", "io"], "aliases": ["fs:ensure", "unnamed_3f1c"]}
    found["record"] |= {"source": {"type": "tool", "tool_id": "fs:read", "default_args": {}}}
    gateway.answers["GET /api/dns/whois"] = (200, found)
    assert pml(monkeypatch, "dns", "whois", "fs:ensure_file") == 0
    out = capsys.readouterr().out
    assert "fs:ensure_file 2 (v1.1.0) | 2 versions" in out
    for fact in (
        "agent-7",
        "files, io",
        "tool fs:read",
        "folder, name",
        "12 runs of this version: 11 succeeded, 1 failed by itself",
        "40 runs of all versions: 38 succeeded, 2 failed by itself",
        "2026-11-21",
    ):
        assert fact in out
    assert any(line.split() == ["former", "names", "fs:ensure"] for line in out.splitlines())
    row = next(line for line in out.splitlines() if "yanked: loses data" in line)
    assert row.split()[0] == "1"
    assert " no " in row
    assert "5f1c9a0b 2026-11-21 09:30, verified" in out


def test_query_sends_every_filter_and_hints_at_the_next_page(
    gateway: Gateway, monkeypatch: Patch, capsys: Capture
) -> None:
    page = {**reply("query-records"), "total": 17, "next_cursor": "bmV4dA"}
    gateway.answers["GET /api/dns/records"] = (200, page)
    words = ["dns", "query", "notes", "--by", "erwan@*", "--namespace", "fs", "--tag", "json"]
    words += ["--tag", "read", "--version-tag", "v1.*", "--visibility", "public", "--unnamed"]
    words += ["--reach", "org", "--sort", "name", "--unlisted", "--limit", "1", "--cursor", "abc"]
    assert pml(monkeypatch, *words) == 0
    assert asked(gateway) == (
        "/api/dns/records",
        {
            "text": ["notes"],
            "created_by": ["erwan@*"],
            "namespace": ["fs"],
            "version_tag": ["v1.*"],
            "tags": ["json", "read"],
            "visibility": ["public"],
            "reach": ["org"],
            "sort": ["name"],
            "include_unlisted": ["True"],
            "include_unnamed": ["True"],
            "limit": ["1"],
            "cursor": ["abc"],
        },
    )
    printed = capsys.readouterr()
    header, row = printed.out.splitlines()
    assert row.index("2 (v1.1.0)") == header.index("version")
    assert "fs:ensure_file" in row
    assert "runs and success are those of the latest version" in printed.err
    assert "1 of 17 records" in printed.err
    assert "next page: the same command with --cursor bmV4dA" in printed.err


def test_records_of_several_scopes_are_shown_by_their_qualified_names(
    gateway: Gateway, monkeypatch: Patch, capsys: Capture
) -> None:
    page = reply("query-records")
    other = {**page["records"][0], "scope": {"org": "acme", "project": "other"}, "fqdn": "a.b.c"}
    page |= {"records": [*page["records"], other], "total": 2}
    gateway.answers["GET /api/dns/records"] = (200, page)
    assert pml(monkeypatch, "dns", "query", "--reach", "org") == 0
    printed = capsys.readouterr()
    assert "acme.webapp.fs.ensure_file.9f52" in printed.out
    assert "a.b.c" in printed.out
    assert printed.err == "runs and success are those of the latest version\n"


def test_nothing_found_is_no_failure(gateway: Gateway, monkeypatch: Patch, capsys: Capture) -> None:
    page: dict[str, Any] = {"records": [], "total": 0, "next_cursor": None}
    gateway.answers["GET /api/dns/records"] = (200, page)
    assert pml(monkeypatch, "dns", "query") == 0
    assert "no records" in capsys.readouterr().out


def test_history_shows_changes_with_diffs_and_the_way_to_the_next_page(
    gateway: Gateway, monkeypatch: Patch, capsys: Capture
) -> None:
    found: dict[str, Any] = {**reply("read-history"), "next_cursor": "b2xk"}
    found["entries"][0]["details"]["version_tag"] = None
    gateway.answers["GET /api/dns/history"] = (200, found)
    assert pml(monkeypatch, "dns", "history", "fs:ensure_file", "--limit", "1") == 0
    assert asked(gateway) == (
        "/api/dns/history",
        {"name": ["fs:ensure_file"], "limit": ["1"]},
    )
    printed = capsys.readouterr()
    assert "#2 versioned  version 2 (v1.1.0)  2026-11-21 09:30  agent-7" in printed.out
    assert "change_summary Create the folder, too" in printed.out
    assert "version_tag" not in printed.out
    assert "    signed by 5f1c9a0be27d4436 at 2026-11-21 09:30" in printed.out
    assert "    +await mcp.fs.create_directory({ path: args.folder });" in printed.out
    assert "next page: the same command with --cursor b2xk" in printed.err


def test_diffs_are_coloured_on_a_terminal(
    gateway: Gateway, monkeypatch: Patch, capsys: Capture
) -> None:
    gateway.answers["GET /api/dns/history"] = (200, reply("read-history"))
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert pml(monkeypatch, "dns", "history", "fs:ensure_file") == 0
    lines = capsys.readouterr().out.splitlines()
    added = next(line for line in lines if "create_directory" in line)
    assert "\x1b[32m+await" in added
    header = next(line for line in lines if "+++ fs:ensure_file@2" in line)
    assert "\x1b[1m+++" in header


@pytest.mark.parametrize(
    ("words", "path", "body", "said"),
    [
        (
            ["fork", "fs:read@2", "fs:own"],
            "fork",
            {"source": "fs:read@2", "name": "fs:own"},
            "fs:read@2 is copied as fs:own",
        ),
        (
            ["merge", "fs:checked", "fs:read@v1", "json:check"],
            "merge",
            {"name": "fs:checked", "sources": ["fs:read@v1", "json:check"]},
            "fs:ensure_file is made of a.b.c.d.a7f3@1, a.b.e.f.b8e2@2",
        ),
        (
            ["rename", "fs:read", "fs:load"],
            "rename",
            {"name": "fs:read", "new_name": "fs:load"},
            "fs:read is called fs:load now",
        ),
        (
            ["tag", "fs:read@2", "v1.2.0"],
            "tag",
            {"name": "fs:read@2", "version_tag": "v1.2.0"},
            "fs:read@2 has the tag v1.2.0",
        ),
        (
            ["tag", "fs:read", "--add", "io", "--add", "json", "--remove", "old"],
            "tag",
            {"name": "fs:read", "add": ["io", "json"], "remove": ["old"]},
            "has the tags (none)",
        ),
        (
            ["describe", "fs:read@2", "reads a file"],
            "describe",
            {"name": "fs:read@2", "description": "reads a file"},
            "fs:read@2 is described: reads a file",
        ),
        (
            ["yank", "fs:read@2", "--reason", "loses [data]"],
            "yank",
            {"name": "fs:read@2", "reason": "loses [data]"},
            "fs:read@2 is yanked: loses [data]",
        ),
        (["unyank", "fs:read@2"], "unyank", {"name": "fs:read@2"}, "is yanked no more"),
        (
            ["visibility", "fs:read", "org"],
            "visibility",
            {"name": "fs:read", "visibility": "org"},
            "fs:read is org now",
        ),
        (
            ["transfer", "fs:read", "ada"],
            "transfer",
            {"name": "fs:read", "owner": "ada"},
            "fs:read belongs to ada now",
        ),
    ],
)
def test_a_change_is_sent_and_told(
    gateway: Gateway,
    monkeypatch: Patch,
    capsys: Capture,
    words: list[str],
    path: str,
    body: dict[str, object],
    said: str,
) -> None:
    answer: dict[str, Any] = {
        **reply("change-record"),
        "merged_from": ["a.b.c.d.a7f3@1", "a.b.e.f.b8e2@2"],
    }
    gateway.answers[f"POST /api/dns/{path}"] = (200, answer)
    assert pml(monkeypatch, "dns", *words) == 0
    assert gateway.asked == [(f"POST /api/dns/{path}", body)]
    printed = capsys.readouterr()
    assert said in printed.out
    assert answer["fqdn"] in printed.out
    assert pml(monkeypatch, "dns", *words, "--json") == 0
    assert json.loads(capsys.readouterr().out) == answer


def test_a_merge_sends_the_program_of_a_file(
    gateway: Gateway, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    gateway.answers["POST /api/dns/merge"] = (200, reply("merge-capabilities"))
    file = tmp_path / "joined.ts"
    file.write_text("return 1;")
    assert pml(monkeypatch, "dns", "merge", "a:b", "c:d", "e:f", "--code", str(file)) == 0
    body = {"name": "a:b", "sources": ["c:d", "e:f"], "code": "return 1;"}
    assert gateway.asked == [("POST /api/dns/merge", body)]
    assert "acme.webapp.json.check.03ce@1" in capsys.readouterr().out


def test_an_admin_shows_the_approvers_key_and_others_show_none(
    gateway: Gateway, monkeypatch: Patch
) -> None:
    gateway.answers["POST /api/dns/unyank"] = (200, reply("change-record"))
    gateway.answers["GET /api/dns/whois"] = (200, reply("whois-record"))
    assert pml(monkeypatch, "dns", "--admin", "unyank", "fs:read") == 0
    assert pml(monkeypatch, "dns", "--admin", "whois", "fs:read") == 0
    assert pml(monkeypatch, "dns", "unyank", "fs:read") == 0
    key = APPROVER["Authorization"]
    assert gateway.keys == [f"POST /api/dns/unyank {key}", f"GET /api/dns/whois {key}"]


def test_a_change_that_changed_nothing_says_so(
    gateway: Gateway, monkeypatch: Patch, capsys: Capture
) -> None:
    answer = {**reply("change-record"), "changed": False, "notices": ["it was so before"]}
    gateway.answers["POST /api/dns/unyank"] = (200, answer)
    assert pml(monkeypatch, "dns", "unyank", "fs:read") == 0
    printed = capsys.readouterr()
    assert "nothing had to be changed" in printed.out
    assert "it was so before" in printed.err


@pytest.mark.parametrize(
    ("words", "route", "query"),
    [
        (["lookup", "fs:x"], "lookup", "lookup-record"),
        (["whois", "fs:x"], "whois", "whois-record"),
        (["query"], "records", "query-records"),
        (["history", "fs:x"], "history", "read-history"),
    ],
)
def test_json_is_the_gateways_answer_and_nothing_else(
    gateway: Gateway,
    monkeypatch: Patch,
    capsys: Capture,
    words: list[str],
    route: str,
    query: str,
) -> None:
    answer = {**reply(query), "next_cursor": "more"}
    gateway.answers[f"GET /api/dns/{route}"] = (200, answer)
    assert pml(monkeypatch, "dns", *words, "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == answer
    assert printed.err == ""


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["lookup", "fs:gone"], 1, "no capability 'fs:gone'"),
        (["lookup"], 2, "NAME"),
        (["yank", "fs:read"], 2, "--reason"),
        (["visibility", "fs:read", "all"], 2, "'all'"),
        (["history", "fs:read", "--limit", "101"], 2, "--limit"),
    ],
)
def test_what_fails_is_told_by_exit_code_and_message(
    gateway: Gateway,
    monkeypatch: Patch,
    capsys: Capture,
    words: list[str],
    code: int,
    complaint: str,
) -> None:
    error = {"kind": "not_found", "message": "no capability 'fs:gone' in acme.webapp"}
    gateway.answers["GET /api/dns/lookup"] = (404, {"error": error})
    assert pml(monkeypatch, "dns", *words) == code
    assert complaint in capsys.readouterr().err
