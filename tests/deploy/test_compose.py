"""Rules for deploy/compose.yml and its overrides."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from pml_common.contracts.catalog import SERVICES
from pml_common.service import StorageSettings
from tests.deploy.compose_files import (
    Service,
    document,
    mebibytes,
    secrets_of,
    services,
    variables,
    whole_services,
)
from tests.deploy.services import SETTINGS
from tools.compose.project import BASE, ROOT
from tools.compose.secrets import make_secrets
from tools.images.stand_ins import stand_ins

STORED = [name for name in SERVICES if issubclass(SETTINGS[name], StorageSettings)]
_STOPS_AFTER_S = 5.0
"""Time beside its drain that a process needs to stop (deploy/README.md)."""
_MIGRATING = {f"{name}-migrate" for name in STORED}
_ENDING = {"volumes", "provision", *_MIGRATING}
_WITHOUT_HEALTH = {"collector", "jaeger", *_ENDING}
"""Images with no program to ask with, and those that end."""
_SECRET_NAME = re.compile("KEY$|PASSWORD|TOKEN|DSN|NATS_URL|SECRET$")
_SECRET = re.compile(r"PRIVATE KEY|://[^/\s:@\"]+:[^/\s@\"$]+@")

each = pytest.mark.parametrize(
    ("name", "service"), whole_services(), ids=[name for name, _ in whole_services()]
)


def test_every_service_of_the_code_runs_from_its_image_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for name in SERVICES:
        assert services()[name]["image"] == f"pml-{name}:{version}"
        assert "command" not in services()[name]
        assert "entrypoint" not in services()[name]


def test_services_wait_for_the_migration_of_their_schema() -> None:
    assert {name for name in services() if name.endswith("-migrate")} == _MIGRATING
    for name in STORED:
        service, migration = services()[name], services()[f"{name}-migrate"]
        assert migration["image"] == service["image"]
        assert migration["command"] == ["migrate"]
        waits = service["depends_on"][f"{name}-migrate"]["condition"]
        assert waits == "service_completed_successfully"


def test_services_wait_until_the_operators_user_has_provisioned_the_bus() -> None:
    provision = services()["provision"]
    assert provision["image"] == services()["gateway"]["image"]
    assert provision["command"] == ["provision"]
    assert [*secrets_of(provision).values()] == ["operator-nats-url"]
    for name, service in whole_services():
        waits = service.get("depends_on", {}).get("provision", {}).get("condition")
        assert waits == ("service_completed_successfully" if name in SERVICES else None)
        assert ("operator-nats-url" in secrets_of(service).values()) == (name == "provision")
    replicas = {services()[name]["environment"]["PML_STREAM_REPLICAS"] for name in SERVICES}
    assert replicas == {provision["environment"]["PML_STREAM_REPLICAS"]}


@each
def test_containers_have_no_rights(name: str, service: Service) -> None:
    root = service["user"].startswith("0")
    assert root == (name == "volumes")
    assert service.get("cap_add", []) == (["CHOWN"] if root else [])
    if root:
        assert service["network_mode"] == "none"
    assert re.fullmatch(r"\d+:\d+", service["user"])
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "pid", "ipc", "userns_mode", "devices"} & set(service)
    assert service.get("network_mode", "none") == "none"
    assert "docker.sock" not in json.dumps(service)


@each
def test_containers_are_bounded_and_of_a_fixed_release(name: str, service: Service) -> None:
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}
    assert re.fullmatch(r"\S+:v?\d[\w.-]+(@sha256:\w{64})?", service["image"])
    assert service["restart"] == ("no" if name in _ENDING else "unless-stopped")


@each
def test_what_serves_has_a_health_check(name: str, service: Service) -> None:
    disabled = service.get("healthcheck", {}).get("disable", False)
    assert disabled == (name in _WITHOUT_HEALTH)
    own_image = name in SERVICES  # theirs is in deploy/images/Dockerfile
    assert disabled or own_image or service["healthcheck"]["test"][0] == "CMD"


def test_only_the_proxy_is_published_on_loopback() -> None:
    for name, service in whole_services():
        ports = service.get("ports", [])
        assert bool(ports) == (name == "proxy"), name
        assert all(port.startswith("127.0.0.1:") for port in ports)


def test_networks_let_each_reach_what_it_needs() -> None:
    networks = document(BASE.name)["networks"]
    open_ones = {name for name, one in networks.items() if not one.get("internal", False)}
    assert open_ones == {"edge", "outside"}
    members: dict[str, set[str]] = {name: set() for name in networks}
    for name, service in whole_services():
        for network in service.get("networks", ()):
            members[network].add(name)
    assert members["edge"] == {"proxy"}
    assert members["outside"] == {"gateway"}
    assert members["front"] == {"proxy", "gateway"}
    assert members["bus"] == {"nats", "provision", *SERVICES}
    assert members["data"] == {"postgres", *STORED, *(f"{name}-migrate" for name in STORED)}
    assert members["tools"] == {"gateway", "notes"}
    assert members["vectors"] == {"registry", "qdrant"}
    assert members["telemetry"] == {*SERVICES, "collector", "prometheus", "traces"}
    assert members["traces"] == {"collector", "jaeger", "prometheus", "grafana", "proxy", "traces"}


@pytest.mark.parametrize("name", SERVICES)
def test_settings_are_the_services_own_and_accepted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, service = SETTINGS[name], services()[name]  # pyright: ignore[reportArgumentType]
    environment: dict[str, str] = service["environment"]
    assert all(isinstance(value, str) for value in environment.values())
    files = {Path(file).name for file in secrets_of(service)}
    assert {Path(file).parent for file in secrets_of(service)} == {Path("/run/pml")}
    named = {f"PML_{field.upper()}" for field in kind.model_fields} | {"PML_SECRETS_DIR"}
    assert {one for one in (*environment, *files) if one.startswith("PML_")} <= named
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PML_SECRETS_DIR", str(tmp_path))
    made = make_secrets(tmp_path / "made")
    for file, secret in secrets_of(service).items():
        (tmp_path / Path(file).name).write_text(made[secret])
    settings = kind()
    assert settings.nats_url == made[f"{name}-nats-url"]
    assert settings.signing_key == Path("/run/pml/signing.pem")
    drain = settings.shutdown_delay_s + settings.shutdown_timeout_s
    assert drain + _STOPS_AFTER_S <= float(service["stop_grace_period"].removesuffix("s"))


def test_an_executor_has_walls_and_memory_for_all_its_sandboxes() -> None:
    executor, gateway = services()["executor"], services()["gateway"]
    assert executor["environment"]["PML_EXECUTOR_WALLS"] == "required"
    fields = SETTINGS["executor"].model_fields
    most = int(executor["environment"]["PML_EXECUTOR_MAX_PROCESSES"])
    rss: int = fields["executor_max_rss_mib"].default
    assert mebibytes(executor["deploy"]["resources"]["limits"]["memory"]) >= most * rss + 512
    in_flight = int(gateway["environment"]["PML_GATEWAY_MAX_IN_FLIGHT"])
    executors, gateways = (int(one["deploy"]["replicas"]) for one in (executor, gateway))
    assert in_flight * gateways == most * executors


def test_no_secret_is_in_the_files() -> None:
    for name, service in whole_services():
        assert not _SECRET.search(json.dumps(service)), name
        for variable, value in service.get("environment", {}).items():
            if _SECRET_NAME.search(variable):
                assert value.startswith("/"), f"{name}: {variable}"


def test_secrets_are_made_and_given_to_those_that_need_them(tmp_path: Path) -> None:
    made = make_secrets(tmp_path / "secrets")
    assert made == make_secrets(tmp_path / "secrets")
    declared = document(BASE.name)["secrets"]
    assert {one["file"] for one in declared.values()} == {f"./secrets/{name}" for name in made}
    assert set(declared) == set(made)
    for name, service in whole_services():
        owner = name.removesuffix("-migrate")
        given = secrets_of(service).values()
        others = [other for other in SERVICES if other != owner and owner != "postgres"]
        assert not [one for one in given if one.startswith(tuple(f"{o}-" for o in others))], name
        owners = {one for one in given if one.endswith("-owner-dsn")}
        assert owners == ({f"{owner}-owner-dsn"} if name in _MIGRATING else set()), name
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    assert (tmp_path / "secrets/made").stat().st_mode & 0o077 == 0


@each
def test_mounted_files_are_there_and_cannot_be_written(name: str, service: Service) -> None:
    mounts = [one for one in service.get("volumes", ()) if one.startswith(".")]
    for mount in mounts:
        file, _, how = mount.split(":")
        assert how == "ro"
        assert "profiles" in service or (BASE.parent / file).exists(), file


def test_the_roles_of_postgres_are_those_of_kubernetes() -> None:
    cluster = yaml.safe_load((ROOT / "deploy/k8s/components/postgres/cluster.yaml").read_text())
    text = (ROOT / "deploy/compose/postgres/10-roles.sql").read_text()
    statements = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    ours = [" ".join(one.split()) for one in statements.split(";") if one.strip()]
    assert ours == cluster["spec"]["bootstrap"]["initdb"]["postInitApplicationSQL"]


def test_the_example_has_every_variable_with_its_default() -> None:
    lines = (ROOT / "deploy/.env.example").read_text(encoding="utf-8").splitlines()
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert given.pop("COMPOSE_PROFILES") == ""
    assert given == variables()


def test_what_has_no_stand_in_is_named() -> None:
    built, unavailable = stand_ins(BASE, BASE.with_name("compose.stand-ins.yml"))
    assert set(built.values()) == {"nats", "postgres", "haproxy", "prometheus", "traces"}
    assert {image.partition(":")[0] for image in unavailable} == {
        "otel/opentelemetry-collector-contrib",
        "jaegertracing/jaeger",
        "qdrant/qdrant",
        "grafana/grafana",
    }
