"""Network policies, the table of docs/operations.md and the code say the same."""

from itertools import product

from pml_common.contracts import catalog
from pml_common.service import StorageSettings
from tests.deploy.manifests import Edge, edges
from tests.deploy.services import SETTINGS
from tools.k8s.rendering import ROOT


def _allowed() -> set[Edge]:
    return edges("dev") | edges("production", "components/models/network.yaml")


def _written() -> set[Edge]:
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    rows = text.split("| from | to | port | why |\n")[1].split("\n\n")[0].splitlines()[1:]
    found: set[Edge] = set()
    for row in rows:
        sources, targets, ports, _ = (cell.strip() for cell in row.strip("|").split("|"))
        every = product(*(cell.split(", ") for cell in (sources, targets, ports)))
        found |= {(source, target, int(port)) for source, target, port in every}
    return found


def _on_the_bus() -> set[str]:
    """Return who sends, handles or hears a message, asks a query or answers one."""
    sending = {each.sender for each in catalog.MESSAGES}
    asking = {client for each in catalog.QUERIES for client in each.clients}
    answering = {each.owner for each in catalog.QUERIES}
    handling = {each.service for each in catalog.CONSUMERS}
    return {*sending, *asking, *answering, *handling, *(who for who, _ in catalog.LISTENERS)}


def _needed() -> set[Edge]:
    """Derive from the message catalog and the settings what services must reach."""
    found: set[Edge] = {(name, "NATS", 4222) for name in _on_the_bus()}
    for name, settings in SETTINGS.items():
        fields = settings.model_fields
        addresses = {each for each in fields if each.endswith("_url")} - {"nats_url"}
        qdrant = {each for each in addresses if "qdrant" in each}
        if issubclass(settings, StorageSettings):
            found |= {(name, "Postgres", 5432), (f"{name}-migrate", "Postgres", 5432)}
        if "otlp_endpoint" in fields:
            found.add((name, "OpenTelemetry Collector", 4318))
        if qdrant:
            found.add((name, "Qdrant", 6333))
        if addresses - qdrant:
            found.add((name, "outside", 443))
        if "mcp_servers" in fields:
            found |= {(name, "outside", 443), (name, "MCP servers in the cluster", 8000)}
        if f"{name}_port" in fields:
            found.add(("Gateway API", name, settings.model_fields[f"{name}_port"].default))
    return found


def test_policies_allow_services_what_their_code_needs_and_nothing_else() -> None:
    ours = {*SETTINGS, *(f"{name}-migrate" for name in SETTINGS)}
    allowed = {
        (source, target, port)
        for source, target, port in _allowed()
        if target != "DNS" and (source in ours or target in ours)
    }
    assert allowed == _needed()


def test_the_table_of_the_manual_is_what_policies_allow() -> None:
    assert _written() == _allowed()


def test_services_never_connect_to_each_other() -> None:
    between = {(source, target) for source, target, _ in _allowed()}
    assert not between & set(product(SETTINGS, SETTINGS))


def test_nobody_reaches_a_gateway_that_no_route_leads_to() -> None:
    assert not {edge for edge in edges("dev") if edge[1] == "gateway"}
