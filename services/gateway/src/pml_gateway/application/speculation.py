"""Speculation: runs the best capability for an intent and a context, or suggests."""

from dataclasses import dataclass

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.scope import Scope
from pml_gateway.application.execute_by_name import CapabilityExecution
from pml_gateway.application.execute_program import Guessed, NotAtOnce, ProgramExecution
from pml_gateway.application.speculation_learning import SpeculationLearning
from pml_gateway.application.suggestions import Suggestions
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.speculation import SpeculationNote, guess
from pml_gateway.domain.workflow.acceptance import Program
from pml_gateway.ports import CallerSide


@dataclass(frozen=True)
class Speculation:
    """Runs what reaches the scope's threshold and needs no person."""

    capabilities: CapabilityExecution
    programs: ProgramExecution
    suggestions: Suggestions
    learning: SpeculationLearning

    async def execute(
        self, scope: Scope, principal: str, request: ExecuteRequest, side: CallerSide
    ) -> ExecuteResponse:
        """Run the best capability, or suggest and say why none ran. Raises as
        `ProgramExecution.execute`, and QueryFailed."""
        earlier = await self._earlier(scope, principal, request, side)
        if earlier is not None:
            return earlier
        suggested = await self.suggestions.suggest(scope, principal, request)
        threshold = (await self.learning.threshold(scope)).threshold
        found = guess(suggested.suggestions, request.arguments, threshold)
        if isinstance(found, SpeculationNote):
            return _with(suggested, found)
        named = {"capability": found.hit.name, "args": found.args, "context": None}
        led_by = request.discovery_id or suggested.discovery_id
        chosen = request.model_copy(update={**named, "discovery_id": led_by})
        try:
            answer = await self.capabilities.execute(
                scope, principal, chosen, side, guessed=Guessed(request, self.learning.begin)
            )
        except NotAtOnce as error:
            return _with(suggested, found.not_run(error.outcome, str(error)))
        except InvalidRequest as error:
            return _with(suggested, found.not_run("unfit_arguments", str(error)))
        except QueryFailed as error:
            if error.code not in ("not_found", "conflict"):
                raise
            return _with(suggested, found.not_run("unavailable", error.message))
        return _with(answer, found.ran)

    async def _earlier(
        self, scope: Scope, principal: str, request: ExecuteRequest, side: CallerSide
    ) -> ExecuteResponse | None:
        """Return the answer to an earlier request under the same key."""
        if request.idempotency_key is None:
            return None
        workflows, key = self.programs.workflows, request.idempotency_key
        known = await workflows.known(scope, await workflows.id_of_key(scope, principal, key))
        if known is None:
            return None
        program = Program(known.requested.code)
        executed = await self.programs.execute(scope, principal, request, side, program)
        return await self.programs.response(executed)


def _with(answer: ExecuteResponse, note: SpeculationNote) -> ExecuteResponse:
    return answer.model_copy(update={"speculation": note})
