"""Builders of commands, grants, capabilities and the commands that follow an approval."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4, uuid5

from pml_common.binding.canonical import sha256_of_text
from pml_common.bus.identity import all_services_keys
from pml_common.contracts import ids
from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.capability import CapabilityIdentity, InjectedCapability
from pml_common.contracts.executor import RunWorkflow, WantedCall, WorkflowParked
from pml_common.contracts.grant import Grant, GrantedCall, GrantedNode, GrantedRest
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, args_hash
from services.executor.tests.support.memory_tools import answering

KEY = next(key for key in all_services_keys() if key.service == "gateway")
TOOLS = ("fs:stat", "fs:read", "fs:create", "fs:write", "api:a", "api:b", "api:c")
_MARKED = re.compile("«([^»]*)»")


def instrumented(marked: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the text that runs, and its spans that are marked as «insertions»."""
    spans: list[tuple[int, int]] = []
    for count, match in enumerate(_MARKED.finditer(marked)):
        start = match.start() - 2 * count
        spans.append((start, start + len(match[1])))
    return marked.replace("«", "").replace("»", ""), tuple(spans)


def author_text(marked: str) -> str:
    """Return the text without its marked insertions."""
    return _MARKED.sub("", marked)


def signed(grant: Grant) -> Grant:
    """Sign a grant with the tests' gateway key."""
    named = grant.model_copy(update={"kid": KEY.kid})
    return named.model_copy(update={"signature": KEY.sign(named.signed_bytes())})


def make_command(
    code: str,
    args: JsonObject | None = None,
    *,
    tools: Sequence[str] = TOOLS,
    injected: Sequence[InjectedCapability] = (),
    timeout_s: float = 50.0,
    repeatable_tools: Sequence[str] = (),
    read_only_tools: Sequence[str] = (),
) -> RunWorkflow:
    """Build the command of a new workflow that runs some code, its «insertions» marked or not."""
    scope, workflow = Scope(org="acme", project="webapp"), uuid4()
    text, insertions = instrumented(code)
    return RunWorkflow(
        command_id=ids.effect_id(workflow, "run-workflow"),
        scope=scope,
        workflow_id=workflow,
        principal="agent:test",
        capability=CapabilityIdentity(
            capability_id=ids.capability_id(scope, "c0de"), code_hash="c0de"
        ),
        instrumented=text,
        insertions=insertions,
        injected=tuple(injected),
        args=args or {},
        grant=signed(
            Grant(
                scope=scope,
                workflow_id=workflow,
                code_hash="c0de",
                text_hash=sha256_of_text(text),
                args_hash=args_hash(args or {}),
                tools=dict.fromkeys(tools, "hash"),
                capabilities={str(one.capability_id): one.code_hash for one in injected},
                texts={
                    str(one.capability_id): sha256_of_text(one.instrumented) for one in injected
                },
                policy_revision="p",
                expires_at=datetime.now(UTC) + timedelta(hours=1),
                journal="signed",
            )
        ),
        repeatable_tools=(*repeatable_tools, *read_only_tools),
        read_only_tools=tuple(read_only_tools),
        begins=True,
        timeout_s=timeout_s,
    )


_NAMES = UUID("4bb1a6cb-7d9c-5d70-8f8f-5a1f0f4b7b52")


def capability(name: str, code: str, *called_as: str) -> InjectedCapability:
    """Build a capability, its «insertions» marked or not."""
    text, insertions = instrumented(code)
    return InjectedCapability(
        capability_id=uuid5(_NAMES, name),
        name=name,
        code_hash=uuid5(_NAMES, code).hex,
        called_as=called_as or (callable_name(name),),
        instrumented=text,
        insertions=insertions,
    )


READ = capability(
    "fs:read_json",
    """const { path } = args;
    console.log(path);
    const file = await «__pml.at("n1", »mcp.fs.stat«)»({ path });
    if («__pml.decide("d1", »file.exists«)») {
      return await «__pml.at("n2", »mcp.fs.read«)»({ path });
    }
    throw new RangeError("nothing at " + path);""",
)
REPORT = capability(
    "report:weekly",
    """const day = await «__pml.at("n1", »capabilities.fs_read_json«)»({ path: "/day" });
    return { day, got: args };""",
)
TOP = capability(
    "top:all", """return await «__pml.at("n1", »capabilities.report_weekly«)»({ from: "top" });"""
)
DEEPER = capability("top:deeper", """return await «__pml.at("n1", »capabilities.top_all«)»({});""")
ALL = (READ, REPORT, TOP, DEEPER)
"""Capabilities of which each calls the one before it."""

ANSWERS = {"fs:stat": answering({"exists": True}), "fs:read": answering("text")}


def calling(name: str, args: str = "{}") -> str:
    """Build a program that calls one capability at n1."""
    return f'return await __pml.at("n1", capabilities.{name})({args});'


def bound(command: RunWorkflow, nodes: dict[str, GrantedNode]) -> RunWorkflow:
    """Bind the grant's tools to `nodes`, those that the approver was shown."""
    tools = {node.tool: "hash" for node in nodes.values() if node.tool is not None}
    update = {"tools": command.grant.tools | tools, "bound": tuple(sorted(tools)), "nodes": nodes}
    return command.model_copy(update={"grant": command.grant.model_copy(update=update)})


def waiting(fact: WorkflowParked) -> tuple[WantedCall, ...]:
    """Return every call at which a parked run waits."""
    return fact.wanted, *fact.beside


def agreed(fact: WorkflowParked, before: RunWorkflow, *to: WantedCall) -> RunWorkflow:
    """Build the command that follows the approval of these calls; of all if none is given."""
    assert fact.grant_digest == before.grant.digest()
    calls = [
        GrantedCall(
            node_id=call.node_id,
            occurrence=call.occurrence,
            tool=call.tool,
            definition_hash=call.definition_hash,
            args_hash=call.args_hash,
        )
        for call in to or waiting(fact)
    ]
    grant = before.grant.model_copy(update={"calls": (*before.grant.calls, *calls)})
    return _going_on(fact, before, grant)


def agreed_to_rest(fact: WorkflowParked, before: RunWorkflow) -> RunWorkflow:
    """Build the command that follows the approval of all further calls of the first one's node."""
    assert fact.grant_digest == before.grant.digest()
    wanted = fact.wanted
    rest = GrantedRest(node_id=wanted.node_id, tool=wanted.tool, definition_hash="mails")
    grant = before.grant.model_copy(update={"rest": (*before.grant.rest, rest)})
    return _going_on(fact, before, grant)


def _going_on(fact: WorkflowParked, before: RunWorkflow, grant: Grant) -> RunWorkflow:
    update = {"command_id": uuid4(), "grant": grant, "begins": False}
    return before.model_copy(update={**update, "parked_under": fact.command_id})
