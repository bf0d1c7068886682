"""The rendered overlays, and what their network policies let through."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from tools.k8s.rendering import ROOT, render

Manifest = Mapping[str, Any]
Edge = tuple[str, str, int]
"""Source, target and port of a connection."""

NAME = "app.kubernetes.io/name"
_WORKLOADS = ("Deployment", "StatefulSet", "Job")
_TITLES = {
    "nats": "NATS",
    "postgres": "Postgres",
    "qdrant": "Qdrant",
    "otel-collector": "OpenTelemetry Collector",
}


@cache
def manifests(overlay: str) -> tuple[Manifest, ...]:
    """Render an overlay."""
    return tuple(yaml.safe_load_all(render(overlay)))


def of_kind(overlay: str, *kinds: str) -> list[Manifest]:
    """Return the manifests of these kinds."""
    return [one for one in manifests(overlay) if one["kind"] in kinds]


def workloads(overlay: str) -> list[Manifest]:
    """Return all that make pods."""
    return of_kind(overlay, *_WORKLOADS)


def pod_of(workload: Manifest) -> Manifest:
    """Return a workload's pod template."""
    return workload["spec"]["template"]


def settings_of(overlay: str, workload: Manifest) -> dict[str, str]:
    """Return the environment of a pod's container: what it takes from config maps, then its own."""
    maps = {one["metadata"]["name"]: one["data"] for one in of_kind(overlay, "ConfigMap")}
    [container] = pod_of(workload)["spec"]["containers"]
    taken: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        taken |= maps[source["configMapRef"]["name"]]
    return taken | {one["name"]: one.get("value", "") for one in container.get("env", ())}


@dataclass(frozen=True)
class Peer:
    """One who connects or is connected to; without a namespace: an address outside the cluster."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    namespace: str | None = None


_ANYWHERE = Peer("anywhere")
_OUTSIDE = Peer("outside")
_OTHERS = (
    Peer("DNS", {"k8s-app": "kube-dns"}, "kube-system"),
    Peer("KEDA", {}, "keda"),
    Peer("Postgres operator", {}, "cnpg-system"),
    Peer("Gateway API", {}, "gateway-system"),
    Peer("OTLP backend", {}, "observability"),
    Peer("MCP servers in the cluster", {"pml-mcp-server": "true"}, "tools"),
    _OUTSIDE,
    _ANYWHERE,
)


def edges(overlay: str, *more: str) -> set[Edge]:
    """Return the connections that an overlay's policies allow, with those of further files of
    deploy/k8s. Each needs its source's consent and its target's, if that is a pod of ours."""
    policies = [*of_kind(overlay, "NetworkPolicy")]
    for file in more:
        policies += yaml.safe_load_all((ROOT / "deploy/k8s" / file).read_text(encoding="utf-8"))
    own = [*_pods(overlay)]
    ports = {number for policy in policies for number in _ports_in(policy)}
    return {
        (source.name, target.name, port)
        for source in (*own, *_OTHERS)
        for target in (*own, *_OTHERS)
        for port in ports
        if (source in own or target in own)
        and (source not in own or _allows(policies, "Egress", source, target, port))
        and (target not in own or _allows(policies, "Ingress", target, source, port))
    }


def _pods(overlay: str) -> Iterator[Peer]:
    namespace = manifests(overlay)[0]["metadata"]["name"]
    pods = {
        "nats": {NAME: "nats"},  # from the component or from the official chart
        "postgres": {"cnpg.io/cluster": "pml-postgres"},
        **{pod["labels"][NAME]: pod["labels"] for pod in _templates(overlay)},
    }
    for name, labels in pods.items():
        yield Peer(_TITLES.get(name, name.removeprefix("pml-")), labels, namespace)


def _templates(overlay: str) -> list[Manifest]:
    return [pod_of(one)["metadata"] for one in workloads(overlay)]


def _ports_in(policy: Manifest) -> Iterator[int]:
    for direction in ("ingress", "egress"):
        for rule in policy["spec"].get(direction, ()):
            for port in rule["ports"]:
                yield port["port"]


def _allows(policies: list[Manifest], way: str, of: Peer, other: Peer, port: int) -> bool:
    """Whether a policy allows `of` this port in the direction `way`: each pod has one that denies
    all, so nothing else is."""
    peers = "to" if way == "Egress" else "from"
    rules = (
        rule
        for policy in policies
        if _selects(policy["spec"]["podSelector"], of.labels)
        and way in policy["spec"]["policyTypes"]
        for rule in policy["spec"].get(way.lower(), ())
        if port in [each["port"] for each in rule["ports"]]
    )
    return any(
        other is _ANYWHERE
        if peers not in rule
        else any(_is_peer(each, other, of.namespace) for each in rule[peers])
        for rule in rules
    )


def _is_peer(rule: Manifest, peer: Peer, own_namespace: str | None) -> bool:
    if "ipBlock" in rule:
        return peer is _OUTSIDE
    if peer.namespace is None or not _selects(rule.get("podSelector", {}), peer.labels):
        return False
    if "namespaceSelector" not in rule:
        return peer.namespace == own_namespace
    return _is_open_to(rule, peer) and _selects(
        rule["namespaceSelector"], {"kubernetes.io/metadata.name": peer.namespace}
    )


def _is_open_to(rule: Manifest, peer: Peer) -> bool:
    """A namespace named without pods stands for its controller, of which we know no labels."""
    return "podSelector" in rule or not peer.labels


def _selects(selector: Manifest, labels: Mapping[str, str]) -> bool:
    wanted = selector.get("matchLabels", {}).items()
    return all(labels.get(key) == value for key, value in wanted) and all(
        each["operator"] == "In" and labels.get(each["key"]) in each["values"]
        for each in selector.get("matchExpressions", ())
    )
