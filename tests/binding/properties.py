"""A property of every program: an undisturbed run matches what was shown, and a call whose bound
arguments were changed inside the sandbox does not. Covers the analysis, the Worker and the
comparison enforced by executor and gateway, without the bus.

`python -m tests.binding.properties [--programs N] [--seed N]`; exits with 1 on a violation.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import Final
from uuid import UUID

from pydantic import JsonValue

from pml_analysis.analysis import Analysis
from pml_common.binding.fit import ActualCall, Binding
from pml_common.binding.granting import granted_nodes
from pml_common.contracts.grant import Grant
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition, args_hash
from tests.binding.generated import ARGS, TOOLS, programs, understood
from tests.binding.oracle import Arrived, Oracle
from tests.binding.runs import Done, Made, as_run, mutated, run
from tests.binding.shown import shown_calls

BATCH: Final = 250
_PROCESSES: Final = 2


@dataclass
class Tally:
    """Counts of trials, and violations."""

    programs: int = 0
    calls: int = 0
    bound: int = 0
    """Calls with a bound argument."""
    surplus: int = 0
    """Calls with an undeclared argument that no spread is shown to set."""
    unseen: int = 0
    """Calls known only at run time: they need approval."""
    refused: int = 0
    """Changed calls that were refused."""
    harmless: int = 0
    """Changed calls whose changed arguments were all shown as computed."""
    ends: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])

    def add(self, other: "Tally") -> None:
        """Add another tally."""
        for name in ("programs", "calls", "bound", "surplus", "unseen", "refused", "harmless"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.ends += other.ends
        self.wrong += other.wrong

    def __str__(self) -> str:
        return (
            f"{self.programs} programs, {self.calls} calls, {self.bound} of them bound, "
            f"{self.unseen} unseen, {self.surplus} with surplus keys; {self.refused} changed calls "
            f"refused, {self.harmless} with nothing bound; {len(self.wrong)} wrong"
        )


@dataclass(frozen=True)
class Judged:
    """A program with everything that judges its calls."""

    code: str
    analysis: Analysis
    tools: Sequence[ToolDefinition] = TOOLS
    args: JsonObject = field(default_factory=lambda: ARGS)
    answers: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def binding(self) -> Binding:
        """The comparison of executor and gateway, with all tools on `ask`."""
        hashes = {tool.tool_id: tool.definition_hash for tool in self.tools}
        nodes = granted_nodes(
            self.analysis.structure.nodes, self.analysis.capabilities, set(hashes)
        )
        grant = Grant(
            scope=Scope(org="local", project="default"),
            workflow_id=UUID(int=0),
            code_hash=self.analysis.code_hash,
            text_hash="",
            args_hash="",
            policy_revision="",
            tools=hashes,
            bound=tuple(hashes),
            nodes=nodes,
            expires_at=datetime.now(UTC),
        )
        return Binding(grant, self.args)

    def has_surplus(self, call: Made) -> bool:
        """Whether a call has a key that its tool's definition lacks."""
        schemas = {tool.tool_id: tool.input_schema for tool in self.tools}
        known = schemas[call.tool].get("properties")
        return isinstance(known, dict) and bool(known) and not call.args.keys() <= known.keys()

    def oracle(self) -> Oracle:
        """The expected decision by the rules."""
        shown = {
            "structure": self.analysis.structure.model_dump(mode="json"),
            "analysis": {
                "capabilities": [one.model_dump(mode="json") for one in self.analysis.capabilities]
            },
            "args": self.args,
        }
        return Oracle(shown_calls(shown), (), ())


def misfit(binding: Binding, call: Made) -> str | None:
    """The reason why the product refuses a call."""
    made = ActualCall(
        call.node or f"dyn:{call.tool}", call.occurrence, call.tool, call.args, args_hash(call.args)
    )
    return binding.mismatch(made, lambda node: call.results.get(node, ()))


def judge(judged: Judged, undisturbed: Done, changed: Done) -> Tally:
    """Judge both runs of one program."""
    tally, binding, oracle = Tally(programs=1), judged.binding(), judged.oracle()
    tally.ends[undisturbed.end.partition(":")[0]] += 1
    for call in undisturbed.calls:
        tally.calls += 1
        why = misfit(binding, call)
        if call.node is None and judged.analysis.dynamic_calls:
            tally.unseen += 1
        elif why is not None and judged.has_surplus(call):
            tally.surplus += 1
        elif why is not None:
            tally.wrong.append(f"refused though undisturbed: {why} {call.args} in: {judged.code}")
        else:
            tally.bound += oracle.is_bound_at(call.node or "")
    for call in changed.calls:
        why = misfit(binding, call)
        if why is not None:
            tally.refused += 1
        elif oracle.fits_at(call.node or "", Arrived(call.tool, call.args, None), call.results):
            tally.harmless += 1
        else:
            tally.wrong.append(f"let through: {call.node} {call.args} in: {judged.code}")
    return tally


def batch(codes: Sequence[str]) -> Tally:
    """Analyse these programs, run them twice and judge them."""
    return judged_all(
        [
            Judged(code, analysis)
            for code in codes
            if isinstance(analysis := understood(code), Analysis)
        ]
    )


def judged_all(judged: Sequence[Judged]) -> Tally:
    """Run every program, unchanged and with changed arguments."""
    done = run(
        [
            as_run(text, one.args, one.analysis.injected, one.answers)
            for one in judged
            for text in (one.analysis.instrumented, mutated(one.analysis))
        ]
    )
    tally = Tally()
    for one, undisturbed, changed in zip(judged, done[::2], done[1::2], strict=True):
        tally.add(judge(one, undisturbed, changed))
    return tally


def batches(count: int, seed: int) -> Iterator[Sequence[str]]:
    """Yield generated programs in batches for one process each."""
    for at in range(0, count, BATCH):
        yield list(programs(min(BATCH, count - at), seed=seed * 1_000_000 + at))


def tried(count: int, seed: int) -> Tally:
    """Judge generated programs in two processes."""
    tally = Tally()
    with ProcessPoolExecutor(_PROCESSES) as pool:
        for one in pool.map(partial(batch), batches(count, seed)):
            tally.add(one)
    return tally


def main() -> int:
    """Judge as many programs as requested."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--programs", type=int, default=20_000)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--show", type=int, default=5)
    told = asked.parse_args()
    began = monotonic()
    tally = tried(told.programs, told.seed)
    for wrong in tally.wrong[: told.show]:
        sys.stdout.write(f"--- {wrong}\n")
    sys.stdout.write(f"{tally}; {dict(tally.ends)}; {monotonic() - began:.0f} s\n")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
