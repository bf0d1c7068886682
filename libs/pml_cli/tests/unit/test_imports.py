"""Packages that cost more than an interpreter's start are imported only by commands that use
them."""

import json
import subprocess
import sys

import pytest

from libs.pml_cli.tests.support.fakes import Gateway

HEAVY = {
    "argcomplete",
    "asyncio",
    "dataclasses",
    "httpx2",
    "importlib.metadata",
    "inspect",
    "psutil",
    "pydantic",
    "rich",
    "subprocess",
}
WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"
SHOW = """
import json, sys
from pml_cli.app import main
try:
    main()
finally:
    sys.stderr.write(json.dumps(sorted(sys.modules)))
"""
SUCCESS: dict[str, object] = {"status": "success", "result": 1, "workflow_id": WORKFLOW}


def imported(*words: str) -> set[str]:
    """The modules of a process that has run the command with success."""
    ran = subprocess.run(
        [sys.executable, "-c", SHOW, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(ran.stderr))


@pytest.mark.parametrize("words", [("--help",), ("status", "--help"), ("dns", "query", "--help")])
def test_help_imports_neither_clients_nor_layout(words: tuple[str, ...]) -> None:
    modules = imported(*words)
    assert not modules & {*HEAVY, "http.client", "socket"}


def test_help_imports_no_group() -> None:
    assert not imported("--help") & {"pml_cli.dns", "pml_cli.servers", "pml_cli.approvals"}


@pytest.mark.parametrize(
    ("route", "answer", "words"),
    [
        ("GET /healthz", {"status": "ok"}, ("status",)),
        ("GET /healthz", {"status": "ok"}, ("status", "--json")),
        ("POST /api/execute", SUCCESS, ("execute", "--capability", "fs:greet")),
        ("GET /api/approvals", {"approvals": []}, ("approvals", "list")),
    ],
    ids=["status", "status --json", "execute", "approvals list"],
)
def test_a_command_that_prints_lines_imports_no_layout_and_no_models(
    gateway: Gateway, route: str, answer: dict[str, object], words: tuple[str, ...]
) -> None:
    gateway.answers[route] = (200, answer)
    assert not imported(*words) & (HEAVY)


def test_a_table_needs_no_models_and_no_other_client(gateway: Gateway) -> None:
    gateway.answers["GET /api/tools"] = (200, {"tools": []})
    assert not imported("tools") & {"httpx2", "psutil", "pydantic"}
