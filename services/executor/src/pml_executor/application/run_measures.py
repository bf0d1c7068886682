"""Measurements and spans of attempts at runs."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic

from opentelemetry import trace
from opentelemetry.trace import Span

from pml_common.bus.errors import Fenced, Retryable
from pml_common.contracts.executor import RunWorkflow
from pml_common.telemetry import metrics, vocabulary
from pml_common.telemetry.instruments import Distribution, Sum
from pml_common.telemetry.spans import spanning
from pml_executor.domain.endings import Ending

_tracer = trace.get_tracer(__name__)
_runs = Distribution(metrics.RUNS)
_replays = Sum(metrics.REPLAYS)
_kills = Sum(metrics.SANDBOX_KILLS)


class RunMeasures:
    """Facts of one attempt: its outcome, once there is one, and the number of sandboxes that were
    killed because their programs did not end by themselves."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.outcome: str | None = None
        self.kills = 0

    def replayed(self, entries: int) -> None:
        """Note that the attempt begins with so many entries of an earlier one."""
        _replays.add(1)
        self._span.set_attribute(vocabulary.REPLAYED, entries)

    def ended(self, ending: Ending | tuple[object, ...]) -> None:
        """Note how the run ended, or that it was parked."""
        if not isinstance(ending, Ending):
            self.outcome = "parked"
        else:
            self.outcome = "success" if ending.error is None else ending.error.kind

    def close(self, began: float) -> None:
        """Measure the attempt, unless there was nothing to run."""
        if self.kills:
            _kills.add(self.kills, self.outcome or "internal")
        if self.outcome is not None:
            self._span.set_attribute(vocabulary.OUTCOME, self.outcome)
            _runs.record(monotonic() - began, self.outcome)


@contextmanager
def measured_run(command: RunWorkflow) -> Generator[RunMeasures]:
    """Open a span around an attempt, and measure it at its end."""
    began = monotonic()
    with spanning(_tracer, "run", _attributes(command)) as span:
        measures = RunMeasures(span)
        try:
            yield measures
        except asyncio.CancelledError:
            measures.outcome = "stopped"
            raise
        except Fenced:
            measures.outcome = "left"
            raise
        except Retryable:
            measures.outcome = "retried"
            raise
        except BaseException:
            measures.outcome = "internal"
            raise
        finally:
            measures.close(began)


@contextmanager
def program_span(command: RunWorkflow, *, realm: bool) -> Generator[Span]:
    """Open a span around a program in its sandbox, from its start to its last message."""
    attributes = {**_attributes(command), vocabulary.REALM: str(realm).lower()}
    with spanning(_tracer, "run program", attributes) as span:
        yield span


@contextmanager
def call_span(command: RunWorkflow, tool: str, node_id: str) -> Generator[Span]:
    """Open a span around a program's call of a tool."""
    attributes = {**_attributes(command), vocabulary.TOOL: tool, vocabulary.NODE_ID: node_id}
    with spanning(_tracer, "call tool", attributes) as span:
        yield span


def _attributes(command: RunWorkflow) -> dict[str, str]:
    return {vocabulary.WORKFLOW_ID: str(command.workflow_id)}
