"""Runs of programs in real Workers of the sandbox, without the bus (worker_runs.js)."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from pml_analysis.analysis import Analysis
from pml_common.contracts.capability import InjectedCapability
from pml_common.contracts.tool import JsonObject
from pml_executor.domain.capabilities import injected

DENO: Final = Path(sys.executable).with_name("deno")
_ROOT: Final = Path(__file__).parents[2]
_FLAGS: Final = ("--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-lock", "--no-check")
_SECONDS: Final = 600


@dataclass(frozen=True)
class Made:
    """A call of a program; `results` of the calls answered before it, by node."""

    node: str | None
    tool: str
    args: JsonObject
    occurrence: int
    results: dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Done:
    """A program's calls and end."""

    end: str
    calls: tuple[Made, ...]


def as_run(
    text: str,
    args: JsonObject,
    capabilities: Sequence[InjectedCapability],
    answers: Mapping[str, JsonValue],
) -> dict[str, object]:
    """Build the Worker's input for an instrumented program; `answers` are results of tools that do
    not follow from the call."""
    told = [one.model_dump() for one in injected(capabilities)]
    return {"code": text, "args": args, "capabilities": told, "answers": answers}


def run(programs: Sequence[dict[str, object]]) -> list[Done]:
    """Run all programs in one Deno process."""
    done = subprocess.run(
        (DENO, "run", *_FLAGS, "--unstable-worker-options", _ROOT / "tests/binding/worker_runs.js"),
        input=f"{json.dumps(_worker_code())}\n{json.dumps(programs)}\n",
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [_done(one["end"], one["events"]) for one in json.loads(done.stdout)]


@cache
def _worker_code() -> str:
    build = _ROOT / "services/executor/src/pml_executor/runtime/build.ts"
    made = subprocess.run((DENO, "run", *_FLAGS, build), capture_output=True, text=True, check=True)
    worker, _ = json.loads(made.stdout)
    return worker


def _done(end: str, events: Sequence[Any]) -> Done:
    calls: list[Made] = []
    nodes: dict[int, str | None] = {}
    results: dict[str, tuple[Any, ...]] = {}
    for event in events:
        if event["kind"] == "answer":
            node = nodes[event["id"]]
            if event["ok"] and node is not None:
                results = {**results, node: (*results.get(node, ()), event["value"])}
            continue
        node = nodes[event["id"]] = event["node"]
        occurrence = sum(one.node == node for one in calls)
        calls.append(Made(node, event["tool"], event["args"], occurrence, results))
    return Done(end, tuple(calls))


def mutated(analysis: Analysis) -> str:
    """Patch the instrumented text: every argument of every call in the program is replaced."""
    change = (
        "const __changed = (node, callee) => { const real = __pml.at(node, callee); "
        "if (typeof callee !== 'function' || real === callee) return real; "
        "return (...given) => { const last = given.length - 1; "
        "if (given[last] && typeof given[last] === 'object') given[last] = Object.fromEntries("
        "Object.keys(given[last]).map((key) => [key, `mutated ${key}`])); "
        "return real(...given); }; }; "
    )
    return change + analysis.instrumented.replace("__pml.at(", "__changed(")
