"""Programs as a model writes them: how many run, at the first attempt and at the second.

`authoring/tasks/*.txt` has 40 tasks over the servers of `authoring/servers.py` (`asked`: what an
author is told beside the intent and the form of the result), each with a program written from the
listing alone, before anything was run, and where that does not give the expected result, a second
one written from our answer alone. They are sent over MCP by the official client. Right: the run
succeeds and returns what the task expects. Then each task's intent in other words asks discovery
which capability serves it, for the threshold of speculation.
`uv run python bench/authoring.py [--told | --anew] [--show] [--only TASK] [--json]`
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

import httpx2
from mcp import Client
from mcp_types import CallToolResult, TextContent
from pydantic import JsonValue

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.tool import JsonObject
from pml_local.composition import StackOptions
from pml_local.ports import free_port
from pml_local.stack import embedded_stack

FOLDER: Final = Path(__file__).parent / "authoring"
SERVERS: Final = ("files", "git", "tracker", "notes", "mail")
THRESHOLDS: Final = (0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8)
UNTOLD: Final = (("first",), ("second",))
TOLD: Final = (("told", "first"), ("told second", "second"))
ANEW: Final = (("anew",),)
"""Names of the programs of each attempt."""

Verdict = Literal["right", "wrong", "failed"]


@dataclass(frozen=True)
class Task:
    """One task: its intent, that in other words, arguments, expected result, and attempts."""

    intent: str
    again: str
    args: JsonObject
    expect: JsonValue
    attempts: Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """The verdict on one attempt, the text that its author would read, and the capability."""

    verdict: Verdict
    text: str
    capability: str | None = None


def tasks() -> Iterator[Task]:
    """Read all tasks."""
    for file in sorted((FOLDER / "tasks").glob("*.txt")):
        for text in file.read_text(encoding="utf-8").split("\n## "):
            yield _task(text.removeprefix("## "))


def _task(text: str) -> Task:
    head, *programs = text.split("\n--- ")
    intent, *lines = head.strip().splitlines()
    fields = dict(line.split(": ", 1) for line in lines)
    attempts = (program.split("\n", 1) for program in programs)
    return Task(
        intent=intent,
        again=fields["again"],
        args=json.loads(fields.get("args", "{}")),
        expect=json.loads(fields["expect"]),
        attempts={name.strip(): code.strip() for name, code in attempts},
    )


async def attempt(client: Client, task: Task, name: str) -> Outcome:
    """Run one program of a task."""
    given: JsonObject = {"intent": task.intent, "code": task.attempts[name], "args": task.args}
    answer = await client.call_tool("pml_execute", given)
    text = _text(answer)
    if answer.is_error:
        return Outcome("failed", text)
    structured = cast(JsonObject, answer.structured_content)
    is_right = structured.get("result") == task.expect
    capability = cast(str | None, structured.get("capabilityId"))
    return Outcome("right" if is_right else "wrong", text, capability)


def _text(answer: CallToolResult) -> str:
    return "\n".join(each.text for each in answer.content if isinstance(each, TextContent))


async def measured(
    client: Client, chosen: Sequence[Task], names: Sequence[tuple[str, ...]], show: bool
) -> list[tuple[Task, str, str | None]]:
    """Run the first attempts, and the second ones where those were not right; return what each task
    came to, and the capability of the last. `names` are the names of each attempt's program: the
    first that a task has counts."""
    found: list[tuple[Task, str, str | None]] = []
    for task in chosen:
        verdicts: list[str] = []
        outcome: Outcome | None = None
        for of_attempt in names:
            name = next((each for each in of_attempt if each in task.attempts), None)
            outcome = await attempt(client, task, name) if name is not None else None
            verdicts.append("none" if outcome is None else outcome.verdict)
            if outcome is None or outcome.verdict == "right":
                break
            if show:
                print(f"## {task.intent}: {name} {outcome.verdict}\n{outcome.text}\n")
        found.append((task, ", then ".join(verdicts), outcome and outcome.capability))
    return found


async def guesses(client: Client, intents: Mapping[str, str]) -> list[tuple[float, bool]]:
    """Ask for each intent, in the words of the keys; return the best capability's score, and
    whether it is the one of that intent."""
    found: list[tuple[float, bool]] = []
    for words, intent in intents.items():
        asked: JsonObject = {"intent": words, "filter": {"type": "capability"}, "limit": 1}
        answer = await client.call_tool("pml_discover", asked)
        page = cast(JsonObject, answer.structured_content)
        for hit in cast(list[JsonObject], page["hits"]):
            score = cast(float, hit["score"])
            found.append((score, hit["description"] == intent))
    return found


def _configured(home: Path) -> Path:
    """Write the servers and a policy that allows everything; return the servers' file."""
    (home / "data").mkdir()
    policy = {"rules": [{"pattern": "*", "verdict": "allow"}]}
    (home / "data" / "policy.json").write_text(json.dumps(policy), encoding="utf-8")
    script = str(FOLDER / "servers.py")
    servers = {
        name: {"command": sys.executable, "args": [script, name], "trust": "hints"}
        for name in SERVERS
    }
    file = home / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return file


async def run(show: bool, only: str | None, names: Sequence[tuple[str, ...]]) -> JsonObject:
    """Measure on a stack of its own."""
    chosen = [task for task in tasks() if only is None or only in task.intent]
    with tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        options = StackOptions(
            home=home / "data", gateway_port=free_port(), mcp_servers=_configured(home), env={}
        )
        async with (
            embedded_stack(options) as stack,
            Client(f"{stack.url}/mcp") as client,
            httpx2.AsyncClient(base_url=stack.url) as http,
        ):
            found = await measured(client, chosen, names, show)
            right = [task for task, came_to, _ in found if came_to.endswith("right")]
            learned = [each for _, came_to, each in found if came_to.endswith("right") and each]

            async def are_learned() -> bool:
                asked = [http.get(f"/api/capabilities/{each}") for each in learned]
                answers = [(await each).json() for each in asked]
                return all(each["usage"]["count"] for each in answers)

            await eventually(are_learned, within=30.0)
            foreign = (FOLDER / "foreign.txt").read_text(encoding="utf-8").splitlines()
            guessed = {
                "same words": await guesses(client, {each.intent: each.intent for each in right}),
                "other words": await guesses(client, {each.again: each.intent for each in right}),
                "foreign intents": await guesses(client, dict.fromkeys(foreign, "")),
            }
    return _report([came_to for _, came_to, _ in found], guessed)


def _report(
    found: Sequence[str], guessed: Mapping[str, Sequence[tuple[float, bool]]]
) -> JsonObject:
    counts = Counter(found)
    first = counts["right"]
    second = sum(n for came_to, n in counts.items() if came_to.endswith("right"))
    return {
        "tasks": len(found),
        "first": first,
        "second": second,
        "came_to": dict(sorted(counts.items())),
        "guesses": {
            kind: {
                "asked": len(scores),
                **{
                    f"{threshold:.2f}": [
                        sum(score >= threshold for score, _ in scores),
                        sum(is_own for score, is_own in scores if score >= threshold),
                    ]
                    for threshold in THRESHOLDS
                },
            }
            for kind, scores in guessed.items()
        },
    }


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print what is not right")
    parser.add_argument("--only", help="tasks whose intent has this text")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--told", action="store_true", help="run those told by the present texts")
    parser.add_argument("--anew", action="store_true", help="run the first ones of a newcomer")
    given = parser.parse_args()
    names = ANEW if given.anew else TOLD if given.told else UNTOLD
    report = asyncio.run(run(given.show, given.only, names))
    if given.json:
        print(json.dumps(report, indent=2))
        return
    total = cast(int, report["tasks"])
    for attempts in ("first", "second"):
        share = cast(int, report[attempts])
        print(f"right at the {attempts} attempt: {share} of {total}, {share / total:.0%}")
    print(f"what the tasks came to: {report['came_to']}")
    print("best capability by intent: [found at or above the score, of these the right one]")
    for kind, scores in cast("dict[str, JsonObject]", report["guesses"]).items():
        print(f"  {kind}: {scores}")


if __name__ == "__main__":
    main()
