"""The record of deletions of principals' data in memory; passes the suite of that in Postgres."""

from collections.abc import Sequence

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.principals import PrincipalDeletion
from pml_gateway.ports import PrincipalDeletionRecord


class MemoryPrincipalDeletions(PrincipalDeletionRecord):
    def __init__(self) -> None:
        self._kept: list[tuple[Scope, PrincipalDeletion]] = []

    @override
    async def add(self, scope: Scope, deletion: PrincipalDeletion) -> None:
        if (scope, deletion) not in self._kept:
            self._kept.append((scope, deletion))

    @override
    async def newest(self, scope: Scope, limit: int) -> Sequence[PrincipalDeletion]:
        own = [deletion for of, deletion in self._kept if of == scope]
        return sorted(own, key=lambda each: each.deleted_at, reverse=True)[:limit]
