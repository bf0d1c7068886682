"""The environment of each part of a stack."""

import json
import socket
from pathlib import Path

import pytest

from pml_common.signing import SigningKey, TrustedKeys
from pml_local.composition import StackOptions, compose
from pml_local.errors import PortTakenError, StackError
from pml_local.folder import DataFolder
from pml_local.services import Service


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create no account and hide the tester's own environment."""
    monkeypatch.setattr("pml_local.composition.database_account", lambda: None)
    for name in (
        "PML_MCP_SERVERS",
        "PML_GATEWAY_PORT",
        "PML_GATEWAY_POLICY_FILE",
        "PML_NATS_SYNC_INTERVAL",
        "PML_GATEWAY_SOCKETS",
    ):
        monkeypatch.delenv(name, raising=False)


async def _environments(home: Path, options: StackOptions) -> dict[str, dict[str, str]]:
    composition = compose(options, DataFolder(home))
    return {service.name: await _environment(service) for service in composition.services}


async def _environment(service: Service) -> dict[str, str]:
    return dict((await service.prepare()).env)


async def test_every_service_is_told_the_servers_and_its_own_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector")
    monkeypatch.setenv("PML_NATS_URL", "nats://elsewhere")
    told = await _environments(tmp_path, StackOptions(tmp_path, env={"PML_LOG_LEVEL": "DEBUG"}))
    assert set(told) == {"gateway", "analyzer", "executor", "learner", "registry"}
    assert len({env["PML_HEALTH_PORT"] for env in told.values()}) == 5
    for name, env in told.items():
        assert env["PML_NATS_URL"].startswith(f"nats://{name}:")
        assert "@127.0.0.1:" in env["PML_NATS_URL"]
        assert env["PML_LOG_LEVEL"] == "DEBUG"
        assert env["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector"
        assert env["PATH"]


async def test_only_services_that_store_something_are_told_where_postgres_is(
    tmp_path: Path,
) -> None:
    told = await _environments(tmp_path, StackOptions(tmp_path))
    assert _told(told, "PML_POSTGRES_DSN") == {"gateway", "learner", "registry"}
    for name, env in told.items():
        others = [each for other, each in told.items() if other != name]
        assert not [each for each in others if env["PML_NATS_URL"] in each.values()]


async def test_each_service_signs_with_a_key_of_its_own_that_lasts(tmp_path: Path) -> None:
    first = await _environments(tmp_path, StackOptions(tmp_path))
    files = {name: Path(env["PML_SIGNING_KEY"]) for name, env in first.items()}
    keys = {SigningKey.load(name, file).public for name, file in files.items()}
    assert len({key.kid for key in keys}) == 5
    (trusted,) = {env["PML_TRUSTED_KEYS"] for env in first.values()}
    assert set(TrustedKeys.load(Path(trusted)).keys) == keys
    await _environments(tmp_path, StackOptions(tmp_path))
    assert set(TrustedKeys.load(Path(trusted)).keys) == keys
    files["learner"].unlink()
    await _environments(tmp_path, StackOptions(tmp_path))
    after = TrustedKeys.load(Path(trusted)).keys
    assert keys < set(after)
    assert [key.service for key in after].count("learner") == 2


async def test_the_registry_marks_beside_the_keys_that_all_versions_are_signed(
    tmp_path: Path,
) -> None:
    told = await _environments(tmp_path, StackOptions(tmp_path))
    variable = "PML_REGISTRY_SIGNED_MARK"
    assert _told(told, variable) == {"registry"}
    assert told["registry"][variable] == str(tmp_path / "keys" / "versions-signed")
    told = await _environments(tmp_path, StackOptions(tmp_path, env={variable: "/run/signed"}))
    assert told["registry"][variable] == "/run/signed"


async def test_a_service_gets_only_the_variables_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = ("PML_EXECUTOR_POOL_SIZE", "LC_ALL", "HOST", "PORT", "PML_INPUT_KEY")
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", *others):
        monkeypatch.setenv(name, "1")
    args = ["${env:HOST}", "${PORT:-80}", "${input:key}"]
    servers = {"github": {"command": "x", "args": args, "env": {"TOKEN": "${GITHUB_TOKEN}"}}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    told = await _environments(
        tmp_path, StackOptions(tmp_path, env={"PML_GATEWAY_PRINCIPAL": "ana"})
    )
    assert _told(told, "AWS_SECRET_ACCESS_KEY") == set()
    for name in ("GITHUB_TOKEN", "HOST", "PORT", "PML_INPUT_KEY"):
        assert _told(told, name) == {"gateway"}
    assert _told(told, "PML_EXECUTOR_POOL_SIZE") == {"executor"}
    assert _told(told, "PML_GATEWAY_PRINCIPAL") == {"gateway"}
    assert _told(told, "LC_ALL") == set(told)


async def test_servers_that_the_gateway_starts_accept_what_this_machine_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV_SYSTEM_CERTS", raising=False)
    monkeypatch.setenv("DENO_TLS_CA_STORE", "mozilla")
    told = await _environments(tmp_path, StackOptions(tmp_path))
    assert _told(told, "UV_SYSTEM_CERTS") == {"gateway"}
    assert told["gateway"]["UV_SYSTEM_CERTS"] == "true"
    assert told["gateway"]["DENO_TLS_CA_STORE"] == "mozilla"


async def test_the_gateway_and_its_clients_know_the_folder_of_its_socket(tmp_path: Path) -> None:
    variable = "PML_GATEWAY_SOCKETS"
    told = await _environments(tmp_path, StackOptions(tmp_path))
    assert _told(told, variable) == {"gateway", "executor", "registry"}
    assert told["gateway"][variable] == told["executor"][variable] == str(tmp_path / "sockets")
    elsewhere = StackOptions(tmp_path, env={variable: "/run/pml"})
    told = await _environments(tmp_path, elsewhere)
    assert {told[name][variable] for name in ("gateway", "executor")} == {"/run/pml"}
    over_nats = await _environments(tmp_path, StackOptions(tmp_path, env={variable: ""}))
    assert not over_nats["gateway"][variable]
    assert "executor" not in _told(over_nats, variable)


def _told(told: dict[str, dict[str, str]], variable: str) -> set[str]:
    return {name for name, env in told.items() if variable in env}


def _key_of(told: dict[str, dict[str, str]]) -> bytes:
    return Path(told["gateway"]["PML_SIGNING_KEY"]).read_bytes()


async def test_a_service_signs_with_the_same_key_after_a_restart(tmp_path: Path) -> None:
    first = await _environments(tmp_path, StackOptions(tmp_path))
    key = _key_of(first)
    assert _key_of(await _environments(tmp_path, StackOptions(tmp_path))) == key
    assert first["gateway"]["PML_GATEWAY_HOST"] == "127.0.0.1"
    assert first["gateway"]["PML_HEALTH_PORT"] != first["gateway"]["PML_GATEWAY_PORT"]


async def test_a_laptops_sandboxes_and_analyzers_start_on_demand_unless_the_user_says_otherwise(
    tmp_path: Path,
) -> None:
    told = await _environments(tmp_path, StackOptions(tmp_path))
    assert told["executor"]["PML_EXECUTOR_POOL_SIZE"] == "1"
    assert told["analyzer"]["PML_ANALYZER_SPARES"] == "0"
    assert _told(told, "PML_EXECUTOR_POOL_SIZE") == {"executor"}
    wanted = {"PML_EXECUTOR_POOL_SIZE": "4", "PML_ANALYZER_SPARES": "1"}
    told = await _environments(tmp_path, StackOptions(tmp_path, env=wanted))
    assert told["executor"]["PML_EXECUTOR_POOL_SIZE"] == "4"
    assert told["analyzer"]["PML_ANALYZER_SPARES"] == "1"


async def test_the_gateway_keeps_as_many_executions_in_flight_as_the_executor_runs(
    tmp_path: Path,
) -> None:
    variable = "PML_GATEWAY_MAX_IN_FLIGHT"
    assert _told(await _environments(tmp_path, StackOptions(tmp_path)), variable) == set()
    runs = {"PML_EXECUTOR_MAX_PROCESSES": "3"}
    told = await _environments(tmp_path, StackOptions(tmp_path, env=runs))
    assert told["gateway"][variable] == "3"
    told = await _environments(tmp_path, StackOptions(tmp_path, env={**runs, variable: "5"}))
    assert told["gateway"][variable] == "5"


async def test_the_mcp_servers_are_those_named_else_those_of_the_home(tmp_path: Path) -> None:
    variable = "PML_MCP_SERVERS"
    told = await _environments(tmp_path, StackOptions(tmp_path))
    assert told["gateway"][variable] == str(tmp_path / "mcp.json")
    (tmp_path / "mine.json").write_text("{}")
    options = StackOptions(tmp_path, mcp_servers=tmp_path / "mine.json")
    told = await _environments(tmp_path, options)
    assert told["gateway"][variable] == str(tmp_path / "mine.json")


async def test_the_gateway_knows_the_folder_of_logins(tmp_path: Path) -> None:
    variable = "PML_GATEWAY_LOGINS"
    told = await _environments(tmp_path, StackOptions(tmp_path))
    assert _told(told, variable) == {"gateway"}
    assert told["gateway"][variable] == str(tmp_path / "logins")


async def test_the_policy_file_is_the_one_named_else_that_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = "PML_GATEWAY_POLICY_FILE"
    told = await _environments(tmp_path, StackOptions(tmp_path))
    assert told["gateway"][variable] == str(tmp_path / "policy.json")
    assert variable not in told["analyzer"]
    monkeypatch.setenv(variable, "/etc/policy.json")
    told = await _environments(tmp_path, StackOptions(tmp_path))
    assert told["gateway"][variable] == "/etc/policy.json"


def test_mcp_servers_that_are_not_there_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    options = StackOptions(tmp_path, mcp_servers=tmp_path / "none.json")
    with pytest.raises(StackError, match=r"none\.json does not exist"):
        compose(options, DataFolder(tmp_path))


def test_a_gateway_port_that_nobody_asked_for_gives_way_when_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr("pml_local.composition.GATEWAY_PORT", port)
        url = compose(StackOptions(tmp_path), DataFolder(tmp_path)).url
        assert url != f"http://127.0.0.1:{port}"
        with pytest.raises(PortTakenError):
            compose(StackOptions(tmp_path, gateway_port=port), DataFolder(tmp_path))
    url = compose(StackOptions(tmp_path, gateway_port=port), DataFolder(tmp_path)).url
    assert url == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("env", "written"),
    [({}, "always"), ({"PML_NATS_SYNC_INTERVAL": "2m"}, "2m")],
)
async def test_how_often_nats_syncs_is_a_setting(
    tmp_path: Path, env: dict[str, str], written: str
) -> None:
    composition = compose(StackOptions(home=tmp_path, env=env), DataFolder(tmp_path))
    await composition.nats.prepare()
    config = (tmp_path / "nats" / "nats-server.conf").read_text()
    assert f'sync_interval: "{written}"' in config


def test_a_sync_interval_that_is_none_is_refused(tmp_path: Path) -> None:
    options = StackOptions(home=tmp_path, env={"PML_NATS_SYNC_INTERVAL": "often"})
    with pytest.raises(StackError, match="PML_NATS_SYNC_INTERVAL=often: expected a duration"):
        compose(options, DataFolder(tmp_path))
