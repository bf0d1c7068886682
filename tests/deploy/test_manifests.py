"""Rules for every manifest, beyond its schema."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pml_common.contracts.catalog import SERVICES
from pml_common.service import StorageSettings
from tests.deploy.manifests import (
    Manifest,
    manifests,
    of_kind,
    pod_of,
    settings_of,
    workloads,
)
from tests.deploy.services import SETTINGS
from tools.k8s.rendering import NAMES

overlays = pytest.mark.parametrize("overlay", NAMES)

_MEBIBYTES = {"Mi": 1, "Gi": 1024}
_STOPS_AFTER_S = 5.0
"""Time beside its drain that a process needs to stop (deploy/README.md)."""


def _named(overlay: str) -> dict[str, Manifest]:
    found = of_kind(overlay, "Deployment")
    return {one["metadata"]["name"].removeprefix("pml-"): one for one in found}


def _containers(overlay: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (one["metadata"]["name"], container)
        for one in workloads(overlay)
        for group in ("initContainers", "containers")
        for container in pod_of(one)["spec"].get(group, ())
    ]


def _mebibytes(quantity: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", quantity).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return int(number) * _MEBIBYTES[unit]


@overlays
def test_every_service_of_the_code_has_a_deployment(overlay: str) -> None:
    deployments = _named(overlay)
    assert set(SERVICES) == set(SETTINGS)
    for name in SERVICES:
        [container] = pod_of(deployments[name])["spec"]["containers"]
        assert container["command"] == ["python", "-m", f"pml_{name}"]


@overlays
def test_every_schema_has_a_migration_of_the_same_release(overlay: str) -> None:
    jobs = {one["metadata"]["name"]: one for one in of_kind(overlay, "Job")}
    stored = [name for name in SERVICES if issubclass(SETTINGS[name], StorageSettings)]
    assert len(jobs) == len(stored) + 1  # pml-provision
    for name in stored:
        [service] = pod_of(_named(overlay)[name])["spec"]["containers"]
        tag = service["image"].rpartition(":")[2]
        [migrating] = pod_of(jobs[f"pml-{name}-migrate.{tag}"])["spec"]["containers"]
        assert migrating["image"] == service["image"]
        assert migrating["command"] == [*service["command"], "migrate"]


@overlays
def test_the_bus_is_provisioned_by_a_job_of_the_same_release(overlay: str) -> None:
    jobs = {one["metadata"]["name"]: one for one in of_kind(overlay, "Job")}
    gateway = _named(overlay)["gateway"]
    [service] = pod_of(gateway)["spec"]["containers"]
    job = jobs[f"pml-provision.{service['image'].rpartition(':')[2]}"]
    [container] = pod_of(job)["spec"]["containers"]
    assert container["image"] == service["image"]
    assert container["command"] == [*service["command"], "provision"]
    for field in ("PML_STREAM_REPLICAS", "PML_START_PATIENCE_S"):
        assert settings_of(overlay, job)[field] == settings_of(overlay, gateway)[field]


@overlays
def test_pods_have_no_rights(overlay: str) -> None:
    for one in workloads(overlay):
        pod = pod_of(one)["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False  # else PML_GATEWAY_PORT is a URL
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] >= 10_000
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not [each for each in pod.get("volumes", ()) if "hostPath" in each]
    for _, container in _containers(overlay):
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}


@overlays
def test_containers_are_bounded_and_of_a_fixed_release(overlay: str) -> None:
    for name, container in _containers(overlay):
        for bounds in ("requests", "limits"):
            assert set(container["resources"][bounds]) == {"cpu", "memory"}, name
        tag = container["image"].rpartition("/")[2].partition(":")[2]
        assert re.match(r"v?\d", tag), container["image"]


@overlays
def test_what_serves_is_probed_spread_and_kept_through_disruptions(overlay: str) -> None:
    budgets = [one["spec"]["selector"] for one in of_kind(overlay, "PodDisruptionBudget")]
    for name, one in _named(overlay).items():
        [container] = pod_of(one)["spec"]["containers"]
        assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container), name
        assert one["spec"]["selector"] in budgets
        if name not in SERVICES:
            continue
        environment = settings_of(overlay, one)
        assert environment["PML_HEALTH_HOST"] == "0.0.0.0"  # noqa: S104 - for the kubelet
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        assert ports["health"] == int(environment["PML_HEALTH_PORT"])
        paths = {probe: container[f"{probe}Probe"]["httpGet"]["path"] for probe in _PROBES}
        assert paths == _PROBES
        keys = [each["topologyKey"] for each in pod_of(one)["spec"]["topologySpreadConstraints"]]
        assert keys == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]


_PROBES = {"startup": "/readyz", "readiness": "/readyz", "liveness": "/livez"}


@overlays
@pytest.mark.parametrize("name", SERVICES)
def test_settings_are_the_services_own_and_accepted(
    name: str, overlay: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, deployment = SETTINGS[name], _named(overlay)[name]  # pyright: ignore[reportArgumentType]
    environment = settings_of(overlay, deployment)
    named = {f"PML_{each.upper()}" for each in kind.model_fields} | {"PML_SECRETS_DIR"}
    files = _secret_files(deployment)
    assert {each for each in (*environment, *files) if each.startswith("PML_")} <= named
    assert not {
        each for each in environment if re.search("KEY$|PASSWORD|TOKEN|DSN|NATS_URL", each)
    } - {
        "PML_SIGNING_KEY"  # a path
    }
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PML_SECRETS_DIR", str(tmp_path))
    for file in files:
        (tmp_path / file).write_text("0" * 64)
    settings = kind()
    assert settings.nats_url == "0" * 64
    assert settings.signing_key == Path("/run/pml/signing.pem")
    drain = settings.shutdown_delay_s + settings.shutdown_timeout_s
    grace = pod_of(deployment)["spec"]["terminationGracePeriodSeconds"]
    assert drain + _STOPS_AFTER_S <= grace


def _secret_files(deployment: Manifest) -> list[str]:
    [secrets] = [
        each for each in pod_of(deployment)["spec"]["volumes"] if each["name"] == "secrets"
    ]
    sources = [one for each in secrets["projected"]["sources"] for one in each.values()]
    return [item["path"] for source in sources for item in source.get("items", ())]


@overlays
def test_an_executor_has_memory_for_all_its_sandboxes_and_gateways_fill_them(overlay: str) -> None:
    deployments = _named(overlay)
    executor = SETTINGS["executor"].model_validate(_lowered(overlay, deployments["executor"]))
    gateway = SETTINGS["gateway"].model_validate(_lowered(overlay, deployments["gateway"]))
    most: int = getattr(executor, "executor_max_processes")  # noqa: B009 - of the subclass
    rss: int = getattr(executor, "executor_max_rss_mib")  # noqa: B009
    [container] = pod_of(deployments["executor"])["spec"]["containers"]
    assert _mebibytes(container["resources"]["limits"]["memory"]) >= most * rss + 512
    in_flight: int = getattr(gateway, "gateway_max_in_flight")  # noqa: B009
    assert in_flight <= 2 * most


def _lowered(overlay: str, deployment: Manifest) -> dict[str, str]:
    environment = settings_of(overlay, deployment)
    return {name.removeprefix("PML_").lower(): value for name, value in environment.items()}


def test_sandboxes_have_walls_of_their_own_or_a_kernel_of_their_own() -> None:
    for overlay in NAMES:
        executor = _named(overlay)["executor"]
        walls = settings_of(overlay, executor)["PML_EXECUTOR_WALLS"]
        kernel = pod_of(executor)["spec"].get("runtimeClassName")
        assert (walls, kernel) in {("required", None), ("best_effort", "gvisor")}


@overlays
def test_no_secret_is_in_the_manifests(overlay: str) -> None:
    assert not of_kind(overlay, "Secret")
    for one in manifests(overlay):
        text = json.dumps(one)
        assert not re.search(r"PRIVATE KEY|://[^/\s:@\"]+:[^/\s@\"]+@", text), one["metadata"][
            "name"
        ]
    for name, container in _containers(overlay):
        for variable in container.get("env", ()):
            assert "secretKeyRef" not in variable.get("valueFrom", {}), name


@overlays
def test_everything_is_in_one_namespace_that_enforces_the_restricted_profile(overlay: str) -> None:
    [namespace] = of_kind(overlay, "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    places = {one["metadata"].get("namespace") for one in manifests(overlay)} - {None}
    assert places == {namespace["metadata"]["name"]}
