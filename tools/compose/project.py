"""The compose project `pml`: its files, its containers and its images."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.images.engine import Engine, NoEngine, find_engine
from tools.k8s.rendering import ROOT

NAME = "pml"
BASE = ROOT / "deploy/compose.yml"
DEMO = ROOT / "deploy/compose.demo.yml"
STAND_INS = ROOT / "deploy/compose.stand-ins.yml"


class ComposeFailed(Exception):
    """The stack is not as it should be; the message says what is wrong and what to do."""


@dataclass(frozen=True)
class Container:
    """One container of the project, as the engine sees it."""

    name: str
    service: str
    state: str
    health: str
    exit_code: int

    @property
    def is_well(self) -> bool:
        """Whether it is healthy, runs without a health check, or has ended as it should."""
        if self.state == "exited":
            return self.exit_code == 0
        return self.state == "running" and self.health in ("", "healthy")

    @property
    def is_lost(self) -> bool:
        """Whether waiting does not help: it ended with an error and is not started again."""
        return self.state in ("exited", "dead") and self.exit_code != 0

    @property
    def problem(self) -> str:
        """Its state in words."""
        if self.state == "exited":
            return f"{self.name} ended with {self.exit_code}"
        return f"{self.name} is {self.state}{f', {self.health}' if self.health else ''}"


@dataclass(frozen=True)
class Project:
    """Commands on the stack of these compose files."""

    engine: Engine
    files: Sequence[Path]

    @cached_property
    def command(self) -> tuple[str, ...]:
        """The command of Compose 2 that works here. Raises ComposeFailed."""
        for words in ((self.engine.docker, "compose"), ("docker-compose",)):
            try:
                done = subprocess.run((*words, "version"), capture_output=True, check=False)
            except FileNotFoundError:
                continue
            if done.returncode == 0:
                return words
        raise ComposeFailed(
            "Compose 2 is missing: install docker-compose-plugin (in Debian docker-compose)"
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The command with the project and its files."""
        named = (word for file in self.files for word in ("--file", str(file)))
        return (*self.command, "--project-name", NAME, *named)

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of its commands."""
        return {**os.environ, "COMPOSE_ANSI": "never"}

    def run(self, *words: str) -> str:
        """Run a command of Compose and return its output. Raises ComposeFailed."""
        done = subprocess.run(
            (*self.words, *words), capture_output=True, text=True, env=self.environment, check=False
        )
        if done.returncode != 0:
            raise ComposeFailed(f"docker compose {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def show(self, *words: str) -> int:
        """Run a command of Compose whose output is for the user; return its exit code."""
        return subprocess.run((*self.words, *words), env=self.environment, check=False).returncode

    def containers(self) -> list[Container]:
        """All containers, also those that ended."""
        listed = self.run("ps", "--all", "--format", "json")
        return [
            Container(one["Name"], one["Service"], one["State"], one["Health"], one["ExitCode"])
            for one in _objects(listed)
        ]

    def of_service(self, service: str) -> list[Container]:
        """The running containers of a service."""
        found = (one for one in self.containers() if one.service == service)
        return sorted((one for one in found if one.state == "running"), key=lambda one: one.name)

    def configuration(self) -> Mapping[str, Any]:
        """Read what the files and the environment come to."""
        return json.loads(self.run("config", "--format", "json"))

    def images(self) -> list[str]:
        """The images of the services that are started."""
        services = self.configuration()["services"].values()
        return sorted({service["image"] for service in services})

    def address(self, service: str, port: int) -> str:
        """The address on this machine of a published port."""
        return f"http://{self.run('port', service, str(port)).strip()}"


def _objects(listed: str) -> Iterator[Mapping[str, Any]]:
    """Read a list, or an object a line, as versions of Compose print them."""
    if listed.startswith("["):
        yield from json.loads(listed)
    else:
        yield from map(json.loads, listed.splitlines())


def running_project(*, demo: bool = False) -> Project:
    """The project as it was started: with stand-ins if they run. Raises ComposeFailed."""
    engine = engine_here()
    every = Project(engine, (BASE, DEMO, STAND_INS))
    services = {one.service for one in every.containers()}
    if not services:
        raise ComposeFailed("the stack does not run: `make compose-up` starts it")
    files = [BASE, *([DEMO] if demo or "notes" in services else [])]
    return Project(engine, (*files, *([STAND_INS] if "traces" in services else [])))


def engine_here() -> Engine:
    """The engine. Raises ComposeFailed."""
    try:
        return find_engine()
    except NoEngine as error:
        raise ComposeFailed(str(error)) from error
