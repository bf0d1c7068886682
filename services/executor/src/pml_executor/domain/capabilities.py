"""Calls of capabilities inside one run: their traces, journal entries and errors.

The sandbox numbers the calls; node ids include the path that leads to them (`n2/n1`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.callable_names import callable_names
from pml_common.contracts.capability import InjectedCapability
from pml_common.contracts.error import Fault, WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.parameters import argument_faults
from pml_common.contracts.trace import CapabilityEnd, CapabilityStart, ToolEnd
from pml_executor.domain.endings import Ending, RunEnded, failure_of
from pml_executor.domain.instrumented import Instrumented
from pml_executor.domain.journal import Call, RunJournal
from pml_executor.domain.protocol import Entered, Failure, Injected

DEEPEST: Final = 3
"""Maximum nesting of calls; the sandbox, too, refuses a deeper one (runtime/worker)."""

_TOO_DEEP: Final = f"capabilities call one another at most {DEEPEST} deep, and this is "

Origin = tuple[Call, ToolEnd]
"""The tool call that an error comes from, and its end."""


def injected(capabilities: Sequence[InjectedCapability]) -> tuple[Injected, ...]:
    """Return the capabilities in the sandbox's form. The names by which programs call them were
    resolved by the analysis; the shared names serve calls that only the run can resolve."""
    named: dict[str, UUID] = {}
    for one in capabilities:
        named |= dict.fromkeys(one.called_as, one.capability_id)
    shared = callable_names([(one.capability_id, one.name) for one in capabilities])
    named = {**shared, **{one.name: one.capability_id for one in capabilities}, **named}
    return tuple(
        Injected(
            name=one.name,
            called_as=tuple(name for name, each in named.items() if each == one.capability_id),
            code=one.instrumented,
        )
        for one in capabilities
    )


@dataclass(frozen=True)
class _Nested:
    """One call of a capability; `start` is its journal entry, recorded or new."""

    index: int
    start: CapabilityStart
    depth: int


class CapabilityCalls:
    """The calls of capabilities in one attempt at one run. Raises RunEnded for messages that
    violate the protocol, and Diverged."""

    def __init__(self, command: RunWorkflow, journal: RunJournal) -> None:
        self._command = command
        self._journal = journal
        self._calls: dict[int, _Nested] = {}
        self._failed: dict[int, WorkflowError] = {}
        self._too_deep = set[int | None]()
        """Calls that failed because they or their callers are nested too deeply."""

    def trace_of(self, within: int | None) -> UUID:
        """Return the trace id of a call, or of the program itself."""
        if within is None:
            return ids.root_trace_id(self._command.workflow_id)
        return self._call(within).start.trace_id

    def enter(self, message: Entered, ts: float) -> CapabilityStart | None:
        """Record the start of a call; return its journal entry if that is new."""
        depth = 1 if message.within is None else self._call(message.within).depth + 1
        known = range(len(self._command.injected))
        if depth > DEEPEST or message.id in self._calls or message.capability not in known:
            raise _forged()
        called = self._command.injected[message.capability]
        occurrence, recorded = self._journal.enter(message.node, called.capability_id, message.args)
        start = recorded or CapabilityStart(
            trace_id=ids.nested_trace_id(self._command.workflow_id, message.node, occurrence),
            parent_trace_id=self.trace_of(message.within),
            node_id=message.node,
            occurrence=occurrence,
            ts=ts,
            capability_id=called.capability_id,
            name=called.name,
            args=message.args,
        )
        self._calls[message.id] = _Nested(message.capability, start, depth)
        return start if recorded is None else None

    def leave(self, number: int, ending: Ending, ts: float) -> CapabilityEnd | None:
        """Record the end of a call; return its journal entry if that is new."""
        start, name = self._call(number).start, self._name(self._call(number).index)
        if ending.error is not None:
            self._failed[number] = ending.error
        if not self._journal.leave(start.trace_id):
            return None
        return CapabilityEnd(
            trace_id=start.trace_id,
            parent_trace_id=start.parent_trace_id,
            node_id=start.node_id,
            occurrence=start.occurrence,
            ts=ts,
            capability_id=start.capability_id,
            success=ending.error is None,
            duration_ms=max(0.0, ts - start.ts),
            result=ending.result,
            error=ending.error,
            notices=tuple(f"{name}: {notice}" for notice in ending.notices),
        )

    def failure(
        self, failure: Failure, origin: Origin | None, number: int | None = None
    ) -> WorkflowError:
        """Build the error that escaped from the program, or from call `number` of a capability, in
        terms of its author's text; an error of a called capability keeps that one's name and
        line."""
        of = None if number is None else self._call(number).index
        error = failure_of(failure, origin, self._text(failure.module))
        fault = error.fault or self._fault(failure, number)
        inner = None if failure.capability is None else self._failed.get(failure.capability)
        if failure.capability is not None and inner is not None:
            name = self._name(self._call(failure.capability).index)
            placed = {"line": error.line, "column": error.column}
            located = {"message": _located(name, inner.line, inner.message)}
            if inner.fault == "environment":  # a caller's is that of this one, and not its caller's
                fault = inner.fault
            error = inner.model_copy(update=placed | located)
        error = error.model_copy(update={"fault": fault})
        if failure.module is None or failure.module == of:
            return error
        # It arose in a promise that was not awaited, in a capability that the run called.
        message = _located(self._name(failure.module), error.line, error.message)
        return error.model_copy(update={"message": message, "line": None, "column": None})

    def _fault(self, failure: Failure, number: int | None) -> Fault | None:
        """Return `caller` where call `number`, or the program, failed with arguments that it cannot
        work with, or is not to blame for the depth of the nesting."""
        if number is None:
            certain, args = self._command.certain, self._command.args
        else:
            nested = self._call(number)
            certain = self._command.injected[nested.index].certain
            args = nested.start.args
            if failure.capability in self._too_deep or self._is_refused(failure, nested):
                self._too_deep.add(number)
                return "caller"
        return "caller" if any(argument_faults(certain, args)) else None

    def _is_refused(self, failure: Failure, nested: _Nested) -> bool:
        """Whether the sandbox refused a call, in its words, because it would be nested too deep."""
        if nested.depth < DEEPEST or failure.capability is not None or failure.call is not None:
            return False
        return failure.name == "TypeError" and _TOO_DEEP in failure.message

    def _call(self, number: int) -> _Nested:
        if number not in self._calls:
            raise _forged()
        return self._calls[number]

    def _text(self, module: int | None) -> Instrumented:
        if module is None:
            return Instrumented.of(self._command)
        self._name(module)
        one = self._command.injected[module]
        return Instrumented(one.instrumented, one.insertions)

    def _name(self, module: int) -> str:
        if module not in range(len(self._command.injected)):
            raise _forged()
        return self._command.injected[module].name


def _located(name: str, line: int | None, message: str) -> str:
    return f"{name}{'' if line is None else f', line {line}'}: {message}"


def _forged() -> RunEnded:
    return RunEnded(WorkflowError(kind="rejected", message="the program forged a call"))
