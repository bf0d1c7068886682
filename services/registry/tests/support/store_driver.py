"""Calls the capability handlers as the bus would."""

from collections.abc import Mapping, Sequence
from uuid import UUID, uuid4

from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.bus.port import Handled
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.dns import (
    Change,
    ChangedRecord,
    ChangeRecord,
    DescribeRecord,
    History,
    LookupRecord,
    QueryRecords,
    ReadHistory,
    RecordPage,
    ResolvedName,
    Whois,
    WhoisRecord,
)
from pml_common.contracts.gateway import WorkflowOutcome
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import (
    CapabilityChanged,
    DescribeCapabilities,
    ListCapabilities,
    Reference,
    ReservedName,
    ReserveName,
    ResolveCapability,
    SetCachePolicy,
    SettleName,
)
from pml_common.contracts.scope import Scope
from pml_registry.application.naming import Naming
from pml_registry.application.record_service import RecordService
from pml_registry.application.resolution import Resolution
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_describe_capabilities import on_describe_capabilities
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.entrypoints.bus.on_list_capabilities import on_list_capabilities
from pml_registry.entrypoints.bus.on_records import (
    on_change_record,
    on_describe_record,
    on_lookup_record,
    on_query_records,
    on_read_history,
    on_whois_record,
)
from pml_registry.entrypoints.bus.on_reserve_name import on_reserve_name
from pml_registry.entrypoints.bus.on_resolve_capability import on_resolve_capability
from pml_registry.entrypoints.bus.on_set_cache_policy import on_set_cache_policy
from pml_registry.entrypoints.bus.on_settle_name import on_settle_name
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import AUTHOR, NOON, SCOPE, TrustedHashes
from services.registry.tests.support.stores import Stores

OWNER = Viewer(SCOPE, AUTHOR)
"""The one whose programs are analysed."""


class StoreDriver:
    """Handles events and queries."""

    def __init__(self, stores: Stores, embedder: Embedder) -> None:
        self._stores = stores
        self._embedder = embedder
        self.now = NOON
        self.outcomes: dict[UUID, WorkflowOutcome] = {}
        self.is_away = False
        self.published: list[Message] = []
        self.resolution = Resolution(stores.records, stores.capabilities)
        self.service = RecordService(stores.records, self.resolution, embedder, self._publish)
        self.naming = Naming(stores.names, embedder, self, self._publish, lambda: self.now)

    async def outcome_of(self, scope: Scope, workflow_id: UUID) -> WorkflowOutcome:
        """Answer as the gateway: what `outcomes` says."""
        try:
            return self.outcomes[workflow_id]
        except KeyError:
            raise QueryFailed("unavailable", "the gateway does not answer") from None

    async def _publish(self, message: Message) -> None:
        if self.is_away:
            raise BusUnavailable("NATS does not answer")
        self.published.append(message)

    async def analysed(self, *analyses: ExecutionAnalyzed) -> Sequence[Message]:
        """Handle a batch; return what is published. Raises the first error of one of them."""
        handled = await on_execution_analyzed(
            analyses, self._stores.capabilities, self._embedder, TrustedHashes()
        )
        return published(handled, analyses)

    async def reserve(
        self,
        name: str,
        analysis: ExecutionAnalyzed,
        *,
        update: bool = False,
        tag: str | None = None,
    ) -> ReservedName:
        """Reserve a name for an analysed program, in the scope of its analysis."""
        query = ReserveName(
            scope=analysis.scope,
            workflow_id=analysis.workflow_id,
            name=name,
            analysis=analysis,
            update=update,
            version_tag=tag,
        )
        capabilities = self._stores.capabilities
        return await on_reserve_name(
            query, self.naming, capabilities, self._embedder, TrustedHashes()
        )

    async def settle(self, analysis: ExecutionAnalyzed, *, succeeded: bool = True) -> str | None:
        """End a program's workflow; return the name that it was given."""
        query = SettleName(
            scope=analysis.scope, workflow_id=analysis.workflow_id, succeeded=succeeded
        )
        return (await on_settle_name(query, self.naming)).name

    async def named(self, name: str, analysis: ExecutionAnalyzed) -> None:
        """Run a program successfully under a name."""
        await self.reserve(name, analysis)
        assert await self.settle(analysis) == name

    async def learned(self, *updates: LearningUpdated) -> Sequence[Message]:
        """Handle a batch; return what is published. Raises the first error of one of them."""
        capabilities = self._stores.capabilities
        return published(await on_learning_updated(updates, capabilities, self._embedder), updates)

    async def resolve(self, reference: str, scope: Scope = SCOPE) -> CapabilityRecord:
        query = ResolveCapability(scope=scope, reference=reference)
        return await on_resolve_capability(query, self.resolution)

    async def set_cache(
        self, reference: str, chosen: Mapping[str, object], by: Viewer = OWNER
    ) -> CapabilityRecord:
        query = SetCachePolicy(
            scope=by.scope,
            principal=by.principal or "",
            is_admin=by.is_admin,
            reference=reference,
            cache=CacheSettings.model_validate(chosen),
        )
        return await on_set_cache_policy(query, self.resolution, self._stores.tools)

    async def describe(
        self, *references: str, scope: Scope = SCOPE, principal: str | None = None
    ) -> Sequence[Reference]:
        query = DescribeCapabilities(scope=scope, principal=principal, references=references)
        answer = await on_describe_capabilities(query, self.resolution)
        return answer.references

    async def resolved_name(
        self, reference: str, scope: Scope = SCOPE, principal: str | None = None
    ) -> str | None:
        """The name of the capability that a reference in a program resolves to."""
        (answer,) = await self.describe(reference, scope=scope, principal=principal)
        return answer.capability.name if answer.capability else None

    async def change(
        self, reference: str, change: Change, by: Viewer = OWNER, *, request_id: UUID | None = None
    ) -> ChangedRecord:
        """Change a record as its owner, unless another does."""
        query = ChangeRecord(
            scope=by.scope,
            principal=by.principal or "",
            is_admin=by.is_admin,
            request_id=request_id or uuid4(),
            reference=reference,
            change=change,
        )
        return await on_change_record(query, self.service)

    async def described(
        self,
        reference: str,
        description: str,
        by: Viewer = OWNER,
        *,
        request_id: UUID | None = None,
    ) -> ChangedRecord:
        """Say what a version is for, as its owner, unless another does."""
        query = DescribeRecord(
            scope=by.scope,
            principal=by.principal or "",
            is_admin=by.is_admin,
            request_id=request_id or uuid4(),
            reference=reference,
            description=description,
        )
        return await on_describe_record(query, self.service)

    async def lookup(self, reference: str, by: Viewer = OWNER) -> ResolvedName:
        query = LookupRecord(scope=by.scope, principal=by.principal or "", reference=reference)
        return await on_lookup_record(query, self.resolution)

    async def whois(self, reference: str, by: Viewer = OWNER) -> Whois:
        query = WhoisRecord(scope=by.scope, principal=by.principal or "", reference=reference)
        return await on_whois_record(
            query, self.resolution, self._stores.records, self._stores.checks
        )

    async def query(self, by: Viewer = OWNER, **filters: object) -> RecordPage:
        asked = {"scope": by.scope, "principal": by.principal or "", **filters}
        return await on_query_records(QueryRecords.model_validate(asked), self._stores.records)

    async def history(self, reference: str, **page: object) -> History:
        asked = {"scope": SCOPE, "principal": AUTHOR, "reference": reference, **page}
        query = ReadHistory.model_validate(asked)
        return await on_read_history(query, self.resolution, self._stores.records)

    async def names(self, *, unlisted: bool = True, scope: Scope = SCOPE) -> list[str]:
        query = ListCapabilities(scope=scope, include_unlisted=unlisted)
        page = await on_list_capabilities(query, self._stores.capabilities)
        return [record.name for record in page.capabilities]


def published(handled: Handled, batch: Sequence[Message]) -> Sequence[Message]:
    """Return what is published after a batch, in its order. Raises the first error in it."""
    for error in handled.failed.values():
        raise error
    return [fact for each in batch for fact in handled.facts.get(each.message_id, ())]


def changes(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Published names and changes."""
    return [(each.name, each.change) for each in messages if isinstance(each, CapabilityChanged)]
