"""Tools that the gateway answers itself: arguments as a model, a query or a use case as their
effect."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pml_common.bus.errors import NoResponder, QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.decision import Policy
from pml_common.contracts.fault_words import field_of
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.api.faults import in_words
from pml_gateway.domain.api.input_schema import input_schema
from pml_gateway.domain.tool_calls.repeatable import NotSent
from pml_gateway.ports import CallOrigin, ComposedPrograms, Speculations, ToolServers

A = TypeVar("A", bound=BaseModel)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)

READS = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
ADDS = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)
CHANGES = ToolAnnotations(read_only=False, destructive=True, idempotent=True, open_world=False)
"""Hints of tools. Those that change something may be called again, as the owner of the query knows
a repeated request."""


@dataclass(frozen=True)
class Backing:
    """The parts that answer calls."""

    query_client: QueryClient
    composed: ComposedPrograms
    speculations: Speculations
    tools: Callable[[], ToolServers]
    """All servers, these among them."""

    policy_of: Callable[[Scope], Policy]


Answer = Callable[[Backing, A, CallOrigin, float], Awaitable[Contract]]
"""Answers a call within so many seconds. Raises QueryFailed, StorageUnavailable, TimeoutError."""


def asks(query_type: QueryType[Q, R], query: Callable[[A, CallOrigin], Q]) -> Answer[A]:
    """Answer by the reply to a query of the caller."""

    async def answer(backing: Backing, arguments: A, origin: CallOrigin, timeout_s: float) -> R:
        asked = query(arguments, origin)
        return await backing.query_client.request(query_type, asked, timeout=timeout_s)

    return answer


def asks_as_caller(query_type: QueryType[Q, R], query: Callable[[A, Scope, str], Q]) -> Answer[A]:
    """Answer by the reply to the query that the arguments make for the caller's scope and
    principal."""
    return asks(
        query_type,
        lambda arguments, origin: query(arguments, origin.caller.scope, origin.caller.principal),
    )


@dataclass(frozen=True)
class StdTool(Generic[A]):
    """A tool whose calls `answer` answers for their caller."""

    name: str
    title: str
    description: str
    annotations: ToolAnnotations
    arguments: type[A]
    answer: Answer[A]

    def definition(self, server: str) -> ToolDefinition:
        """Return the tool as a server lists it."""
        return ToolDefinition(
            server=server,
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=input_schema(self.arguments),
            annotations=self.annotations,
        )

    async def call(
        self, backing: Backing, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        """Return the answer. Raises TimeoutError."""
        try:
            arguments = self.arguments.model_validate(args)
        except ValidationError as error:
            return ToolOutcome(status="tool_error", message=_fault(error))
        try:
            reply = await self.answer(backing, arguments, origin, timeout_s)
        except NoResponder as error:
            return NotSent(status="tool_error", message=f"{error}. Nothing was changed")
        except QueryFailed as error:
            if error.code != "unavailable":
                return ToolOutcome(status="tool_error", message=error.message)
            return self._without_answer(error.message)
        except StorageUnavailable as outage:
            return self._without_answer(str(outage))
        return ToolOutcome(status="ok", result=reply.model_dump(mode="json"))

    def _without_answer(self, message: str) -> ToolOutcome:
        status = "tool_error" if self.annotations.read_only else "unknown"
        return ToolOutcome(status=status, message=message, fault="environment")


def _fault(error: ValidationError) -> str:
    """Describe the first fault of arguments, with the field."""
    fault = error.errors(include_url=False)[0]
    field = field_of(fault["loc"]) or "arguments"
    return f"{field}: {in_words({**fault})}"
