"""Collects the evidence after a campaign: from the gateway, journals, tools and the registry."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import httpx2
from nats.js import JetStreamContext

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec, names
from pml_common.bus.dead_letters import REASON, SUBJECT
from pml_common.bus.errors import Rejected
from pml_common.bus.journal import read_stored
from pml_common.bus.payloads import NatsPayloads
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import (
    RUN_FINISHED,
    TRACE_RECORDED,
    WORKFLOW_FINISHED,
    WORKFLOW_PARKED,
    MessageType,
)
from pml_common.contracts.executor import (
    JournalAppend,
    RunFinished,
    TraceRecorded,
    WorkflowParked,
)
from pml_common.contracts.gateway import WorkflowFinished
from pml_common.contracts.trace import ToolEnd, ToolStart
from pml_gateway.domain.workflow.run_end import finished_id
from tests.faults.load import end_of
from tests.faults.poison import FORGED
from tests.faults.programs import KINDS
from tests.faults.records import Asked, Evidence, Injection, Journaled, Run, Use
from tests.faults.site import Site

M = TypeVar("M", bound=Message)
Json = dict[str, Any]

APPENDS: tuple[tuple[MessageType[JournalAppend], type[JournalAppend]], ...] = (
    (TRACE_RECORDED, TraceRecorded),
    (WORKFLOW_PARKED, WorkflowParked),
    (RUN_FINISHED, RunFinished),
)
ENDS_WITHIN_S = PATIENCE_S
COUNTS_WITHIN_S = PATIENCE_S
HEALTHY_WITHIN_S = PATIENCE_S
PAGE = 200
REFUSED = "Error executing tool refuse"
"""The error message of a tool that always fails."""
LEARNS = "learns-"
"""Prefix of the runs before the load, which taught the capabilities."""


@dataclass
class Stored:
    """Stored messages on the bus, without the poison: calls by workflow, and published ends."""

    calls: dict[UUID, list[Journaled]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[UUID, set[UUID]] = field(default_factory=lambda: defaultdict(set))
    runs: dict[UUID, RunFinished] = field(default_factory=dict[UUID, RunFinished])
    unreadable: list[str] = field(default_factory=list[str])


async def collected(
    site: Site, asked: Sequence[Asked], injections: Sequence[Injection]
) -> Evidence:
    """Collect everything, once no run is open or the limits have passed."""
    await _until(lambda: _nothing_open(site), ENDS_WITHIN_S)
    await _until(lambda: _healthy(site), HEALTHY_WITHIN_S)
    stored = await read(site)
    await _until(lambda: _counted(site, stored), COUNTS_WITHIN_S)
    known = {one.workflow_id: one for one in asked}
    runs, unknown = list[Run](), list[str]()
    async for summary in _workflows(site):
        workflow = UUID(summary["workflow_id"])
        one = known.pop(workflow, None)
        if one is not None:
            runs.append(run_of(one, await _view(site, workflow), stored, site.poisoned))
        elif not any(name.startswith(LEARNS) for name in _keys(stored, workflow)):
            unknown.append(str(workflow))
    runs += [Run(one, "missing") for one in known.values()]
    return Evidence(
        runs=runs,
        made=made_calls(site.calls.read_text(encoding="utf-8")),
        uses=await _uses(site, stored),
        injections=injections,
        health=await site.problems(),
        unreadable=stored.unreadable,
        dead=await _dead(site),
        unknown=unknown,
        now=time.time(),
    )


async def _until(check: Callable[[], Any], within: float) -> None:
    """Wait for a condition; the verdict reports it if it is never met."""
    try:
        await eventually(check, within=within)
    except AssertionError:
        return


def run_of(asked: Asked, view: Json, stored: Stored, poisoned: Mapping[UUID, str]) -> Run:
    """Build a run from its workflow's view and its journal."""
    status, kind = end_of(view)
    error: Json = view.get("error") or {}
    finished = view["finished_at"]
    spoilt = poisoned.get(asked.workflow_id, "")
    return Run(
        asked=asked,
        status=status,
        kind=kind,
        message=error.get("message", ""),
        created=datetime.fromisoformat(view["created_at"]).timestamp(),
        finished=datetime.fromisoformat(finished).timestamp() if finished else None,
        timeout_s=view["timeout_s"],
        ends=len(stored.ends[asked.workflow_id]),
        fits=KINDS[asked.program].program.matches({"result": view["result"], "error": error}),
        poisoned="" if spoilt == FORGED else spoilt,  # a forged message ends no run
        calls=tuple(stored.calls[asked.workflow_id]),
    )


def key_of_call(tool: str, args: Mapping[str, object]) -> str:
    """A key that is equal for equal calls; begins with the tool and a space."""
    return f"{tool} {json.dumps(args, sort_keys=True)}"


def made_calls(text: str) -> dict[str, Counter[str]]:
    """The calls that the tool servers logged, by run."""
    made = dict[str, Counter[str]]()
    for line in text.splitlines():
        call: Json = json.loads(line)
        made.setdefault(call["args"]["run"], Counter())[
            key_of_call(call["tool"], call["args"])
        ] += 1
    return made


async def read(site: Site) -> Stored:
    """All journals and ends."""
    stored = Stored()
    appends = dict[UUID, list[JournalAppend]]()
    for entry, model in APPENDS:
        for append in await _stored(site, entry, model, stored.unreadable):
            appends.setdefault(append.workflow_id, []).append(append)
            if isinstance(append, RunFinished):
                stored.runs[append.event_id] = append
                stored.ends[append.workflow_id].add(finished_id(append.workflow_id))
    for workflow, journal in appends.items():
        stored.calls[workflow] = calls_of(journal)
    for end in await _stored(site, WORKFLOW_FINISHED, WorkflowFinished, stored.unreadable):
        stored.ends[end.workflow_id].add(end.event_id)
    return stored


def calls_of(journal: Sequence[JournalAppend]) -> list[Journaled]:
    """Every call of a journal, with its end if there is one."""
    entries = [entry for append in journal for entry in append.entries]
    ends = {entry.trace_id: entry for entry in entries if isinstance(entry, ToolEnd)}
    starts = {entry.trace_id: entry for entry in entries if isinstance(entry, ToolStart)}
    found = list[Journaled]()
    for trace, start in starts.items():
        end = ends.get(trace)
        if end is None:
            how = "open"
        else:
            how = "ok" if end.success else end.error.kind if end.error else "error"
        if end is not None and end.error is not None and REFUSED in end.error.message:
            how = "ok"
        found.append(Journaled(key_of_call(start.tool, start.args), start.tool, how))
    return found


async def _stored(
    site: Site, entry: MessageType[M], model: type[M], unreadable: list[str]
) -> list[M]:
    """All messages of a type without the poison, oldest first."""
    stream = names.stream_of(entry.kind, entry.owner)
    js = JetStreamContext(site.client, timeout=5.0)
    payloads = NatsPayloads(site.client, js, "operator")
    found = list[M]()
    for message in await read_stored(site.client, stream, names.filter_of(entry)):
        headers = message.headers or {}
        sequence = int(headers["Nats-Sequence"])
        if (stream, sequence) in site.poison:
            continue
        try:
            data = await codec.check_out(message.data, headers, payloads)
            found.append(codec.decode(model, data))
        except Rejected as error:
            unreadable.append(f"{stream} {sequence}: {error}")
    return found


async def _workflows(site: Site) -> AsyncGenerator[Json]:
    offset = 0
    while True:
        page = await _get(site, f"/api/workflows?limit={PAGE}&offset={offset}")
        for summary in page["workflows"]:
            yield summary
        offset += PAGE
        if offset >= page["total"]:
            return


async def _view(site: Site, workflow: UUID) -> Json:
    return await _get(site, f"/api/workflows/{workflow}")


async def _get(site: Site, path: str) -> Json:
    try:
        answer = await site.http.get(path)
    except httpx2.TransportError as error:
        raise AssertionError(f"{path} is not answered: {error!r}") from error
    assert answer.is_success, f"{path} answers {answer.status_code}: {answer.text[:200]}"
    return answer.json()


async def _nothing_open(site: Site) -> bool:
    return all([one["status"] in ("success", "error") async for one in _workflows(site)])


async def _healthy(site: Site) -> bool:
    return not await site.problems()


async def _counted(site: Site, stored: Stored) -> bool:
    uses = await _uses(site, stored)
    return all(use.counted == use.traces == use.runs for use in uses)


async def _uses(site: Site, stored: Stored) -> list[Use]:
    """Use of each capability that the registry knows or that a run ended of."""
    runs = Counter[str]()
    for run in stored.runs.values():
        if not run.dry_run:
            runs[str(run.capability.capability_id)] += 1
            runs.update(str(call.capability.capability_id) for call in run.nested)
    counted, called = dict[str, int](), dict[str, str]()
    offset, total = 0, 1
    while offset < total:
        path = f"/api/capabilities?include_unlisted=true&limit={PAGE}&offset={offset}"
        page = await _get(site, path)
        for known in page["capabilities"]:
            counted[known["capability_id"]] = known["usage"]["count"]
            called[known["capability_id"]] = known["name"]
        offset, total = offset + PAGE, page["total"]
    traces = {
        one: (await _get(site, f"/api/traces/{one}?limit=1"))["total"]
        for one in sorted(counted.keys() | runs.keys())
    }
    return [
        Use(called.get(one, one), counted.get(one, 0), runs[one], traces[one]) for one in traces
    ]


async def _dead(site: Site) -> list[str]:
    """Dead-lettered messages, except poison and those of poisoned workflows."""
    found = list[str]()
    for letter in await read_stored(site.client, names.DEAD_STREAM, names.DEAD_SUBJECTS):
        headers = letter.headers or {}
        durable, stream, sequence = headers[codec.MSG_ID].split("/")
        subject = headers.get(SUBJECT, "")
        workflow = names.parse_subject(subject).entity
        spoilt = any(str(one) == workflow for one in site.poisoned)
        if (stream, int(sequence)) not in site.poison and not spoilt:
            found.append(f"{durable} gave up {subject}: {headers.get(REASON)}")
    return found


def _keys(stored: Stored, workflow: UUID) -> list[str]:
    """The run named in the calls of a workflow."""
    arguments = (json.loads(call.call.partition(" ")[2]) for call in stored.calls[workflow])
    return [str(one.get("run", "")) for one in arguments]
