"""`pml bus provision`: its output and exit code."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from libs.pml_local.tests.support.nats_accounts import NatsAccount
from pml_cli import command_line
from pml_cli.app import PML
from pml_cli.errors import CommandError
from pml_common.bus import streams

REPLICAS = {"PML_STREAM_REPLICAS": "3"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(*words: str, **env: str) -> tuple[int, str]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            code = command_line.run(PML, ["bus", "provision", *words], "pml")
        return code, capsys.readouterr().out

    return run


@pytest.mark.integration
def test_streams_are_provisioned_and_listed_once(
    bare_account: NatsAccount, run: Callable[..., tuple[int, str]]
) -> None:
    env = {"PML_NATS_URL": bare_account.url}
    code, text = run("--dry-run", **env)
    assert code == 0
    assert "create PML_GATEWAY_EVT\n" in text
    code, text = run("--json", **env)
    told = json.loads(text)
    assert (code, told["replicas"], told["dry_run"]) == (0, 1, False)
    assert {each["state"] for each in told["provisioned"]} == {"created"}
    assert {each["name"] for each in told["provisioned"]} >= set(streams.stream_names())
    code, text = run(**env)
    assert (code, len(text.splitlines())) == (0, 1)
    code, text = run(**env, **REPLICAS)
    assert code == 1
    assert "cannot have 3 replicas" in text


def test_without_a_stack_the_error_says_what_to_name(
    tmp_path: Path, run: Callable[..., tuple[int, str]]
) -> None:
    os.environ.pop("PML_NATS_URL", None)
    with pytest.raises(CommandError, match="PML_NATS_URL"):
        run("--home", str(tmp_path))
