"""The gateway's stores."""

from dataclasses import dataclass

from pml_common.storage.scoped import ScopedPools
from pml_gateway.adapters.postgres.accepted_tools import PostgresAcceptedTools
from pml_gateway.adapters.postgres.elicitation import PostgresElicitation
from pml_gateway.adapters.postgres.ledger import PostgresCallLedger
from pml_gateway.adapters.postgres.outbox import PostgresOutbox
from pml_gateway.adapters.postgres.principals import PostgresPrincipalDeletions
from pml_gateway.adapters.postgres.results import PostgresResults
from pml_gateway.adapters.postgres.speculations import PostgresSpeculatedRuns
from pml_gateway.adapters.postgres.workflows import PostgresWorkflowStore
from pml_gateway.ports import (
    AcceptedTools,
    CallLedger,
    ElicitationSettings,
    LastingResults,
    Outbox,
    PrincipalDeletionRecord,
    SpeculatedRuns,
    WorkflowStore,
)


@dataclass(frozen=True)
class Stores:
    """One of each."""

    workflows: WorkflowStore
    outbox: Outbox
    ledger: CallLedger
    results: LastingResults
    accepted: AcceptedTools
    elicitation: ElicitationSettings
    speculated: SpeculatedRuns
    deletions: PrincipalDeletionRecord


def postgres_stores(pools: ScopedPools, patience_s: float) -> Stores:
    """Build the stores in Postgres; operations that a caller waits for take `patience_s` at
    most."""
    return Stores(
        PostgresWorkflowStore(pools, patience_s=patience_s),
        PostgresOutbox(pools),
        PostgresCallLedger(pools),
        PostgresResults(pools, patience_s=patience_s),
        PostgresAcceptedTools(pools, patience_s=patience_s),
        PostgresElicitation(pools, patience_s=patience_s),
        PostgresSpeculatedRuns(pools, patience_s=patience_s),
        PostgresPrincipalDeletions(pools),
    )
