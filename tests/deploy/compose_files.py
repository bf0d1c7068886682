"""The compose files, with the defaults of their variables."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from tools.compose.project import BASE, DEMO, STAND_INS

Service = Mapping[str, Any]
FILES = (BASE, DEMO, STAND_INS)
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


@cache
def document(name: str) -> Mapping[str, Any]:
    """Read a file of deploy as Compose does with an empty environment."""
    text = BASE.with_name(name).read_text(encoding="utf-8")
    return yaml.safe_load(_VARIABLE.sub(lambda found: found[2], text))


def variables() -> dict[str, str]:
    """The variables of all files, with their defaults."""
    found: dict[str, str] = {}
    for file in FILES:
        for name, default in _VARIABLE.findall(file.read_text(encoding="utf-8")):
            assert found.setdefault(name, default) == default, name
    return found


def services(name: str = BASE.name) -> Mapping[str, Service]:
    """The services of a file."""
    return document(name)["services"]


def whole_services() -> list[tuple[str, Service]]:
    """All services that are defined, not only changed, by any file."""
    every = [(name, one) for file in FILES for name, one in services(file.name).items()]
    return [(name, one) for name, one in every if "image" in one]


def secrets_of(service: Service) -> dict[str, str]:
    """The secrets that a service is given: their names by the files inside."""
    given = service.get("secrets", ())
    return {
        (f"/run/secrets/{one}" if isinstance(one, str) else one["target"]): (
            one if isinstance(one, str) else one["source"]
        )
        for one in given
    }


def mebibytes(text: str) -> int:
    """A quantity of memory, as Compose writes it."""
    return int(text[:-1]) * {"M": 1, "G": 1024}[text[-1]]
