"""The metrics that the code, the dashboards and the rules name."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
TELEMETRY = ROOT / "deploy/telemetry"
RUNBOOKS = ROOT / "docs/runbooks"
DASHBOARDS = sorted((TELEMETRY / "grafana").glob("*.json"))

_INSTRUMENT = re.compile(r"\b(?:Sum|Gauge|Distribution)\(metrics\.([A-Z_]+)\)")
_METER = re.compile(r"\bcreate_(?:observable_)?(?:counter|gauge|histogram|up_down_counter)\b")
_NAME = re.compile(r"\b(?:pml|http)_[a-z0-9_]+")
_LABELS = re.compile(r"\{([^{}]*)\}|by \(([^()]*)\)")
_LABEL = re.compile(r"([a-z_]+)\s*(?:=~|!~|!=|=|,|$)")
_GRAFANA = "$__rate_interval"


def modules() -> Iterator[tuple[Path, str]]:
    """Every module of the libraries and services, with its text."""
    for folder in ("libs", "services"):
        for path in (ROOT / folder).glob("*/src/**/*.py"):
            yield path, path.read_text()


def instrumented() -> list[str]:
    """The declarations of which the code makes instruments, one for each instrument."""
    return [name for _, text in modules() for name in _INSTRUMENT.findall(text)]


def makers_of_instruments() -> set[str]:
    """The modules that use OpenTelemetry's meters."""
    return {path.name for path, text in modules() if _METER.search(text)}


def rules() -> list[dict[str, Any]]:
    """Every alert rule."""
    loaded = yaml.safe_load((TELEMETRY / "alerts.yml").read_text())
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def panels(dashboard: Path) -> list[dict[str, Any]]:
    """The panels of a dashboard that show something."""
    found = json.loads(dashboard.read_text())["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def expressions() -> list[tuple[str, str]]:
    """Every expression of the rules, dashboards and runbooks, with where it is."""
    found = [(rule["alert"], rule["expr"]) for rule in rules()]
    for dashboard in DASHBOARDS:
        for panel in panels(dashboard):
            place = f"{dashboard.name}: {panel['title']}"
            found += [(place, target["expr"]) for target in panel["targets"]]
    for page in sorted(RUNBOOKS.glob("*.md")):
        queries = re.findall(r"```promql\n(.*?)```", page.read_text(), re.DOTALL)
        found += [(page.name, line) for query in queries for line in query.splitlines()]
    return found


def names_in(expression: str) -> set[str]:
    """The metrics that an expression names; labels are not."""
    return set(_NAME.findall(_LABELS.sub(" ", expression)))


def labels_in(expression: str) -> set[str]:
    """The labels that an expression selects or groups by."""
    plain = expression.replace(_GRAFANA, "5m")
    groups: Sequence[tuple[str, str]] = _LABELS.findall(re.sub(r'"[^"]*"', '""', plain))
    return {label for pair in groups for text in pair for label in _LABEL.findall(text)}
