"""Images: which engine builds them, from which bases, and the scripts that run in builds."""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from http import HTTPStatus
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from tools.images.build import DOCKERFILE, PINS, SERVICES, read_pins
from tools.images.engine import NoEngine, find_engine

SCRIPTS = DOCKERFILE.parent
REACHES_NONE = "exit 1"
OLD = """case "$*" in *Server*) echo 20.10.24;; *Client*) echo 20.10.24;; *) exit 1;; esac"""
WITHOUT_BUILDX = """case "$*" in *Server*|*Client*) echo 28.2.2;; *) exit 1;; esac"""
WITH_BUILDX = "echo 28.2.2"


def with_dockers(folder: Path, *scripts: str) -> dict[str, str]:
    """An environment whose path has one docker for each script."""
    for number, script in enumerate(scripts):
        (folder / str(number)).mkdir()
        docker = folder / str(number) / "docker"
        docker.write_text(f"#!/bin/sh\n{script}\n")
        docker.chmod(0o755)
    return {"PATH": os.pathsep.join(str(folder / str(n)) for n in range(len(scripts)))}


def test_the_first_docker_that_can_build_is_taken(tmp_path: Path) -> None:
    engine = find_engine(with_dockers(tmp_path, REACHES_NONE, WITHOUT_BUILDX, OLD, WITH_BUILDX))
    assert (engine.docker, engine.building) == (str(tmp_path / "2/docker"), ("build",))


def test_buildx_loads_what_it_builds_into_the_engine(tmp_path: Path) -> None:
    engine = find_engine(with_dockers(tmp_path, WITH_BUILDX))
    assert (engine.building, engine.loading) == (("buildx", "build"), ("--load",))


@pytest.mark.parametrize(
    ("scripts", "reason"),
    [
        ((), "no `docker` is on the path: install"),
        ((REACHES_NONE,), "reaches no engine: start it"),
        ((WITHOUT_BUILDX,), "is without BuildKit: install"),
    ],
    ids=["no command", "no engine", "no BuildKit"],
)
def test_where_nothing_can_build_it_says_what_is_missing(
    tmp_path: Path, scripts: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(NoEngine, match=reason):
        find_engine(with_dockers(tmp_path, *scripts))


def test_every_base_image_is_a_pin_and_every_service_a_target_without_a_shell() -> None:
    pins = read_pins(PINS.read_text())
    text = DOCKERFILE.read_text()
    defaults = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", text, re.MULTILINE))
    assert defaults == {name: image.partition("@")[0] for name, image in pins.items()}
    bases = {target: base for base, target in re.findall(r"^FROM (\S+) AS (\S+)$", text, re.M)}
    outside = {base for base in bases.values() if base not in bases and base != "scratch"}
    assert outside == {f"${{{name}}}" for name in pins}
    assert {target for target, base in bases.items() if base == "runtime"} == set(SERVICES)
    assert bases["runtime"] == "scratch"
    assert "latest" not in text


def test_only_the_registry_has_weights_and_only_two_have_deno() -> None:
    projects = {
        name: DOCKERFILE.parents[2] / f"services/{name}/pyproject.toml" for name in SERVICES
    }
    texts = {name: path.read_text() for name, path in projects.items()}
    assert [name for name in SERVICES if "minilm" in texts[name]] == ["registry"]
    assert [name for name in SERVICES if '"deno' in texts[name]] == ["analyzer", "executor"]


class Ready(http.server.BaseHTTPRequestHandler):
    """Answers with the status that its server was given."""

    def do_GET(self) -> None:
        status = HTTPStatus.OK if self.path == "/readyz" else HTTPStatus.NOT_FOUND
        self.send_response(getattr(self.server, "status", status))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def check(port: int) -> subprocess.CompletedProcess[str]:
    """Run the health check as an image does."""
    command = (sys.executable, "-I", "-S", SCRIPTS / "healthcheck.py")
    environment = {"PML_HEALTH_PORT": str(port)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )


def test_the_health_check_passes_while_the_service_is_ready() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ready) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            ready = check(server.server_port)
            server.status = HTTPStatus.SERVICE_UNAVAILABLE  # pyright: ignore[reportAttributeAccessIssue]
            draining = check(server.server_port)
        finally:
            server.shutdown()
            thread.join()
    gone = check(server.server_port)
    assert (ready.returncode, draining.returncode, gone.returncode) == (0, 1, 1)
    assert "503" in draining.stdout
    assert "no answer" in gone.stdout


def test_a_bill_lists_python_packages_the_interpreter_and_debian_packages(tmp_path: Path) -> None:
    (tmp_path / "bill.json").write_text(json.dumps({"components": [{"name": "nats-py"}]}))
    folder = tmp_path / "root/var/lib/dpkg/status.d"
    folder.mkdir(parents=True)
    status = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.36-9\n"
    (folder / "libc6").write_text(status)
    arguments = ("executor", tmp_path / "bill.json", tmp_path / "root", tmp_path / "root")
    done = subprocess.run(
        (sys.executable, SCRIPTS / "sbom.py", *arguments),
        check=True,
        capture_output=True,
        text=True,
    )
    bill = json.loads(done.stdout)
    assert bill["metadata"]["component"]["name"] == "pml-executor"
    assert [found["name"] for found in bill["components"]] == ["nats-py", "python", "libc6"]
    assert bill["components"][2]["purl"] == "pkg:deb/debian/libc6@2.36-9?arch=amd64"
