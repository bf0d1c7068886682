"""Commands on the vector index."""

import time
from collections.abc import Mapping, Sequence
from typing import Final, cast

from pml_cli.client import Client, Json
from pml_cli.errors import FAILED
from pml_cli.markup import escape
from pml_cli.output import Output

POLL_S: Final = 0.5


def index(client: Client, out: Output) -> None:
    """The state of the vector index."""
    state = client.get("/api/index")
    out.show(state, *_lines(state))


def reindex(client: Client, out: Output, wait_s: float, approver: Mapping[str, str]) -> int:
    """Rebuild the index and wait at most so long for its end; return the exit code. `approver` are
    the headers that authorise it."""
    deadline = time.monotonic() + wait_s
    state = client.post("/api/index/reindex", {}, approver)
    said = ""
    while wait_s and _is_running(state):
        progress = _progress(state)
        if progress != said and not out.as_json:
            out.note(said := progress)
        time.sleep(POLL_S)
        state = client.get("/api/index")
        if time.monotonic() >= deadline:
            break
    out.show(state, *_lines(state))
    return FAILED if wait_s and _is_running(state) else 0


def _is_running(state: Json) -> bool:
    return cast(Json, state.get("reindex") or {}).get("state") == "running"


def _progress(state: Json) -> str:
    run = cast(Json, state["reindex"])
    text = f"{run['stored']} of {run['total']} vectors stored, {run['removed']} removed"
    return f"{text}; {run['problem']}" if run.get("problem") else text


def _lines(state: Json) -> Sequence[str]:
    lines = [f"vectors are searched in {escape(str(state['index']))}"]
    for model in cast(list[Json], state["models"]):
        name = f"{escape(str(model['name']))} ({model['dimension']} numbers)"
        missing = "" if model["complete"] else ", not all in the index yet"
        lines.append(f"model {name}: {model['state']}{missing}")
    if state.get("pending"):
        lines.append(f"changes that the index has not had: {state['pending']}")
    if state.get("reindex"):
        run = cast(Json, state["reindex"])
        lines.append(f"rebuild {run['state']}: {escape(_progress(state))}")
    return lines
