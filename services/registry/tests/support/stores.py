"""A store behind every port."""

from collections.abc import Mapping
from dataclasses import dataclass

from libs.pml_local.tests.support.databases import Schema
from pml_common.bus.identity import all_services_keys
from pml_common.contracts.scope import Scope
from pml_common.signing import SigningKey, TrustedKeys
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_capabilities import PostgresCapabilityStore
from pml_registry.adapters.postgres_dependencies import PostgresDependencyStore
from pml_registry.adapters.postgres_discovery import PostgresCandidateStore
from pml_registry.adapters.postgres_edges import PostgresEdgeStore
from pml_registry.adapters.postgres_evidence import PostgresEvidenceStore
from pml_registry.adapters.postgres_graph import PostgresGraphStore
from pml_registry.adapters.postgres_names import PostgresNameStore
from pml_registry.adapters.postgres_records import PostgresRecordStore
from pml_registry.adapters.postgres_signatures import PostgresSignatureStore
from pml_registry.adapters.postgres_tools import PostgresToolStore
from pml_registry.adapters.postgres_vectors import PgvectorIndex
from pml_registry.adapters.version_keys import VersionKeys
from pml_registry.application.version_checks import CheckedCapabilities, VersionChecks
from pml_registry.ports import (
    CandidateStore,
    CapabilityStore,
    CodeHashing,
    NameStore,
    SignatureStore,
    ToolStore,
)
from pml_registry.ports.evidence import EvidenceStore
from pml_registry.ports.graph import DependencyStore, EdgeStore, GraphStore
from pml_registry.ports.records import RecordStore
from pml_registry.ports.vectors import VectorIndex
from services.registry.tests.support.builders import TrustedHashes

REGISTRY = Schema("registry", "pml_registry")
Edges = Mapping[tuple[str, str, str], tuple[int, str]]
"""Count and source, by both ends and type."""
VERIFIED_RUNS = 3


@dataclass(frozen=True)
class Stores:
    """Everything the handlers need but an embedder."""

    capabilities: CapabilityStore
    tools: ToolStore
    index: VectorIndex
    candidates: CandidateStore
    names: NameStore
    records: RecordStore
    dependencies: DependencyStore
    shown: EdgeStore
    graph: GraphStore
    pools: ScopedPools
    signatures: SignatureStore
    checks: VersionChecks
    evidence: EvidenceStore

    async def edges(self, scope: Scope) -> Edges:
        """The edges of a scope between two tools, or a tool and a capability."""
        async with self.pools.across() as session:
            rows = await session.fetch(
                """
                SELECT from_tool_id, to_tool_id, edge_type, observed_count, edge_source
                FROM tool_dependency WHERE org = $1 AND project = $2
                UNION ALL
                SELECT from_node, to_node, edge_type, observed_count, edge_source
                FROM capability_tool_edge WHERE org = $1 AND project = $2
                """,
                scope.org,
                scope.project,
            )
        return {
            (row["from_tool_id"], row["to_tool_id"], row["edge_type"]): (
                row["observed_count"],
                row["edge_source"],
            )
            for row in rows
        }


def registry_key() -> SigningKey:
    """The registry's key in tests."""
    return next(each for each in all_services_keys() if each.service == "registry")


def version_keys(
    key: SigningKey | None = None, *trusted: SigningKey, hashing: CodeHashing | None = None
) -> VersionKeys:
    """Sign with this key, else with the registry's, and trust the others, too."""
    own = key or registry_key()
    public = TrustedKeys(each.public for each in (own, *trusted))
    return VersionKeys(own, public, hashing or TrustedHashes())


def stores_on(pools: ScopedPools, keys: VersionKeys | None = None) -> Stores:
    """Build the stores, with the registry's keys or others."""
    checks = VersionChecks(keys or version_keys(), VERIFIED_RUNS)
    return Stores(
        CheckedCapabilities(PostgresCapabilityStore(pools, checks.signing), checks),
        PostgresToolStore(pools),
        PgvectorIndex(pools),
        PostgresCandidateStore(pools),
        PostgresNameStore(pools, checks.signing),
        PostgresRecordStore(pools, checks.signing),
        PostgresDependencyStore(pools),
        PostgresEdgeStore(pools),
        PostgresGraphStore(pools),
        pools,
        PostgresSignatureStore(pools),
        checks,
        PostgresEvidenceStore(pools),
    )
