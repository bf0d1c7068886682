"""Code, dashboards, rules and runbooks name the declared metrics and nothing else."""

import json
import re
from collections import Counter

import yaml

from pml_common.telemetry import metrics, vocabulary
from tests.telemetry.sources import (
    DASHBOARDS,
    TELEMETRY,
    expressions,
    instrumented,
    labels_in,
    makers_of_instruments,
    modules,
    names_in,
    panels,
)

SAMPLES = {sample for metric in metrics.METRICS for sample in metric.samples}
OF_PROMETHEUS = {"le", "job", "instance", "service_name"}
LABELS = OF_PROMETHEUS | {
    attribute.name.replace(".", "_")
    for metric in metrics.METRICS
    for attribute in metric.attributes
}


def test_every_declared_metric_has_one_instrument_and_every_instrument_is_declared() -> None:
    declared = {
        name for name, value in vars(metrics).items() if value in metrics.METRICS and name.isupper()
    }
    assert len(declared) == len(metrics.METRICS)
    assert Counter(instrumented()) == Counter(declared)
    assert makers_of_instruments() == {"instruments.py"}


def test_attributes_of_spans_are_declared() -> None:
    declared = {value for name, value in vars(vocabulary).items() if name.isupper()}
    assert len(declared) == sum(name.isupper() for name in vars(vocabulary))
    literal = re.compile(r'set_attribute\(\s*"([^"]+)"|"(pml\.[a-z_]+\.[a-z_]+)": ')
    used = {
        found
        for path, text in modules()
        if "spans" in text or "tracing" in text
        for pair in literal.findall(text)
        for found in pair
        if found and path.name not in ("metrics.py", "vocabulary.py")
    }
    assert used == set()


def test_expressions_name_declared_metrics_and_labels() -> None:
    found = expressions()
    assert len(found) > len(metrics.METRICS)
    for place, expression in found:
        names = names_in(expression)
        assert names <= SAMPLES, f"{place}: {names - SAMPLES}"
        assert names or "up{" in expression, f"{place} names no metric: {expression}"
        assert labels_in(expression) <= LABELS, f"{place}: {labels_in(expression) - LABELS}"


def test_values_in_expressions_are_allowed() -> None:
    allowed = {
        attribute.name.replace(".", "_"): [
            a for m in metrics.METRICS for a in m.attributes if a.name == attribute.name
        ]
        for metric in metrics.METRICS
        for attribute in metric.attributes
    }
    selector = re.compile(r'([a-z_]+)(=~|!~|=|!=)"([^"]*)"')
    for place, expression in expressions():
        for label, how, text in selector.findall(expression):
            if label in OF_PROMETHEUS or label == "http_response_status_code":
                continue
            for value in text.split("|") if "~" in how else [text]:
                assert any(a.allows(value) for a in allowed[label]), f"{place}: {label}={value}"


def test_every_metric_is_on_a_dashboard() -> None:
    shown = {
        name
        for dashboard in DASHBOARDS
        for panel in panels(dashboard)
        for target in panel["targets"]
        for name in names_in(target["expr"])
    }
    hidden = {metric.name for metric in metrics.METRICS if not shown & set(metric.samples)}
    assert hidden == set()


def test_dashboards_use_the_provisioned_source_and_have_ids_of_their_own() -> None:
    provisioned = yaml.safe_load(
        (TELEMETRY / "grafana/provisioning/datasources/pml.yaml").read_text()
    )
    sources = {each["uid"] for each in provisioned["datasources"]}
    loaded = [json.loads(path.read_text()) for path in DASHBOARDS]
    assert len({each["uid"] for each in loaded}) == len(loaded) == len(DASHBOARDS)
    for dashboard in loaded:
        ids = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(ids)) == len(ids)
        for panel in dashboard["panels"]:
            if panel["type"] != "row":
                uids = {panel["datasource"]["uid"]}
                uids |= {target["datasource"]["uid"] for target in panel["targets"]}
                assert uids <= sources, panel["title"]
