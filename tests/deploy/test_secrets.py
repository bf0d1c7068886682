"""The secrets that are made are those that manifests refer to."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.catalog import SERVICES
from pml_common.signing import SigningKey, TrustedKeys
from pml_local.nats import nats_server_program
from tests.deploy.manifests import Manifest, manifests, pod_of, workloads
from tools.k8s.rendering import NAMES, ROOT
from tools.k8s.secrets import manifest

_NATS = ROOT / "deploy/k8s/components/nats"


def _made(folder: Path) -> dict[tuple[str, str], Manifest]:
    items = manifest("pml", folder)["items"]
    return {(one["kind"], one["metadata"]["name"]): one for one in items}


def _references(node: Any) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Find kind, name and keys of what pods and others take from elsewhere, unless optional."""
    match node:
        case {"secretName": str(name)}:
            yield "Secret", name, ()
        case {"passwordSecret": {"name": str(name)}}:
            yield "Secret", name, ("username", "password")
        case {"secret": {"name": str(name)} as source} if not source.get("optional"):
            yield "Secret", name, tuple(each["key"] for each in source["items"])
        case {"configMap": {"name": str(name)} as source} if "items" in source:
            yield "ConfigMap", name, tuple(each["key"] for each in source["items"])
        case dict():
            for value in node.values():  # pyright: ignore[reportUnknownVariableType]
                yield from _references(value)
        case list():
            for value in node:  # pyright: ignore[reportUnknownVariableType]
                yield from _references(value)
        case _:
            pass


@pytest.mark.parametrize("overlay", NAMES)
def test_every_secret_that_manifests_refer_to_is_made(overlay: str, tmp_path: Path) -> None:
    made = _made(tmp_path)
    wanted = [each for one in manifests(overlay) for each in _references(one)]
    assert len(wanted) > len(workloads(overlay))
    for kind, name, keys in wanted:
        one = made[kind, name]
        assert set(keys) <= set(one.get("stringData") or one["data"])


def test_a_second_run_makes_the_same_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    assert _made(tmp_path / "keys") == _made(tmp_path / "keys")
    assert (tmp_path / "keys").stat().st_mode & 0o077 == 0
    assert (tmp_path / "keys/passwords.json").stat().st_mode & 0o077 == 0


def test_each_service_gets_its_own_key_and_all_public_ones(tmp_path: Path) -> None:
    made = _made(tmp_path)
    trusted = made["ConfigMap", "pml-trusted-keys"]["data"]["trusted.json"]
    (tmp_path / "trusted").write_text(trusted)
    public = TrustedKeys.load(tmp_path / "trusted").keys
    for name in SERVICES:
        file = tmp_path / "one.pem"
        file.write_text(made["Secret", f"pml-{name}"]["stringData"]["signing.pem"])
        file.chmod(0o440)  # as it is mounted
        assert SigningKey.load(name, file).public in public


def test_pods_mount_no_secret_of_another_service() -> None:
    for overlay in NAMES:
        for one in workloads(overlay):
            pod = pod_of(one)
            service = pod["metadata"]["labels"]["app.kubernetes.io/name"]
            mounted = {name for kind, name, _ in _references(pod["spec"]) if kind == "Secret"}
            assert mounted <= {service, f"pml-{service}"}


@pytest.mark.integration
def test_the_server_of_nats_accepts_its_configuration(tmp_path: Path) -> None:
    passwords = _made(tmp_path / "keys")["Secret", "pml-nats"]["stringData"]["passwords.conf"]
    (tmp_path / "passwords.conf").write_text(passwords)
    for file in ("nats.conf", "server.conf", "users.conf"):
        (tmp_path / file).write_bytes((_NATS / file).read_bytes())
    run = subprocess.run(
        [nats_server_program(), "-t", "-c", tmp_path / "nats.conf"],
        env={"POD_NAME": "pml-nats-0"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "is valid" in run.stderr
