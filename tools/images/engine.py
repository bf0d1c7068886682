"""The Docker engine that images are built with."""

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_FIRST_WITHOUT_BUILDKIT = 23
"""Major version of the command from which BuildKit is a plugin of it, buildx."""


class NoEngine(Exception):
    """Images cannot be built here; the message says what is missing."""


@dataclass(frozen=True)
class Engine:
    """A command that reaches an engine, and the way in which it builds."""

    docker: str
    building: tuple[str, ...]
    loading: tuple[str, ...] = ()
    """Options by which a built image becomes one of the engine's."""

    def run(self, *words: str) -> str:
        """Run a command of docker and return its output. Raises CalledProcessError."""
        done = subprocess.run((self.docker, *words), check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def build(self, options: Sequence[str], *, load: bool) -> None:
        """Build with BuildKit. Raises CalledProcessError; what is wrong is on stderr."""
        command = (self.docker, *self.building, *(self.loading if load else ()), *options)
        subprocess.run(command, check=True, env={**os.environ, "DOCKER_BUILDKIT": "1"})


def find_engine(environment: Mapping[str, str] = os.environ) -> Engine:
    """Return the first docker of PATH that reaches an engine and can build. Raises NoEngine."""
    problems: list[str] = []
    for docker in _commands(environment.get("PATH", "")):
        try:
            return _engine(docker)
        except NoEngine as error:
            problems.append(str(error))
    if not problems:
        problems = ["no `docker` is on the path: install Docker Engine 20.10 or newer"]
    raise NoEngine("; ".join(problems))


def _commands(path: str) -> Iterable[str]:
    places = (Path(folder, "docker") for folder in path.split(os.pathsep) if folder)
    return dict.fromkeys(str(place) for place in places if os.access(place, os.X_OK))


def _engine(docker: str) -> Engine:
    if not _succeeds(docker, "version", "--format", "{{.Server.Version}}"):
        raise NoEngine(
            f"{docker} reaches no engine: start it (`systemctl start docker`), and be a user that"
            " may use it"
        )
    if _succeeds(docker, "buildx", "version"):
        return Engine(docker, ("buildx", "build"), ("--load",))
    told = subprocess.run(
        (docker, "version", "--format", "{{.Client.Version}}"), capture_output=True, text=True
    ).stdout
    if int(told.split(".")[0]) < _FIRST_WITHOUT_BUILDKIT:
        return Engine(docker, ("build",))
    raise NoEngine(
        f"{docker} is without BuildKit: install its plugin buildx (docker-buildx-plugin, in Debian"
        " docker-buildx)"
    )


def _succeeds(*command: str) -> bool:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode == 0
