"""Callers that wait for workflows in this process."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

from pml_common.contracts.scope import Scope
from pml_gateway.ports import CallerSide


class WaitingCallers:
    """The callers' ends of the calls, by workflow."""

    def __init__(self) -> None:
        self._sides: dict[tuple[Scope, UUID], list[CallerSide]] = {}

    @contextmanager
    def waiting(self, scope: Scope, workflow_id: UUID, side: CallerSide) -> Generator[None]:
        """Count a caller as waiting for a workflow until the context exits."""
        # The answer is the program's: it cannot carry what the server of one of its tools asks for.
        side = replace(side, inputs=None)
        sides = self._sides.setdefault((scope, workflow_id), [])
        sides.append(side)
        try:
            yield
        finally:
            sides.remove(side)
            if not sides:
                self._sides.pop((scope, workflow_id), None)

    def of(self, scope: Scope, workflow_id: UUID) -> CallerSide | None:
        """Return the caller that has waited longest for a workflow; None where nobody waits."""
        sides = self._sides.get((scope, workflow_id))
        return sides[0] if sides else None
