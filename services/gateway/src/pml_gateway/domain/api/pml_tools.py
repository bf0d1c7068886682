"""Our own tools as MCP lists them: `pml_execute` and `pml_discover` (F2, D1)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from pml_common.contracts.capability import CapabilityName
from pml_common.contracts.registry import Discover
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import Intent

EXECUTE, DISCOVER = "pml_execute", "pml_discover"
OUR_NAMES = frozenset({EXECUTE, DISCOVER})

INSTRUCTIONS = """\
PML runs small TypeScript programs that call the tools of MCP servers, and remembers those that
worked as capabilities. Look for one with pml_discover before writing code; run code or a capability
with pml_execute. Every other tool here is also callable inside such a program by its title, as
`await mcp.call("server:tool", {...})`."""

_EXECUTE_DESCRIPTION = """\
Run a TypeScript program that calls MCP tools, or a capability learned from earlier runs.

Give `code` (the body of an async function) or `capability` (with `args`). Inside the code:
`await mcp.<server>.<tool>({...})` or `await mcp.call("server:tool", {...})` calls a tool and throws
if it fails; `args` holds the arguments; the value of `return` is the result. Tools are the only way
out: no imports, network or files.

The program is read as a whole before anything runs. Status `approval_required` means that a person
must agree first: nothing has run or, where `approval.begun`, the run waits at one call or, with
`approval.layer`, between two layers of a dag. `error` says what failed and where. A program that
worked is kept, under `name` if you give one, and can be found by its `intent`. Where an answer says
`cached`, nothing ran: so ended an earlier workflow with the same capability and arguments."""

_DISCOVER_DESCRIPTION = """\
Find tools and capabilities that serve an intent, best first, each with the schema of its arguments.

A capability is a program that has worked before: run it with pml_execute
{"capability": "<name>", "args": {...}}. Scores are between 0 and 1."""


def _object(properties: JsonObject, *required: str) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _text(description: str, **more: str | int) -> JsonObject:
    return {"type": "string", "description": description, **more}


_TOOL_ID: JsonObject = {"type": "string", "description": "server:tool"}

_DAG_TASK = _object(
    {
        "id": _text("Names the task in this DAG."),
        "tool": _TOOL_ID,
        "arguments": {
            "type": "object",
            "description": "A string that is `$OUTPUT[id]` or `$INPUT[name]`, with a path as "
            "`.items[0]` after it, stands for a task's output or an argument in args; text that "
            "begins like that, or with `$$`, gets one more `$` before it.",
        },
        "dependsOn": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Ids of the tasks that must have ended before.",
        },
    },
    "id",
    "tool",
)

_EXECUTE_SCHEMA = _object(
    {
        "intent": _text("What this is for, in a sentence; it is found by it later."),
        "code": _text("TypeScript: the body of an async function. It ends with `return <result>`."),
        "name": {
            **TypeAdapter(CapabilityName).json_schema(),
            "description": "Name to keep the code under: namespace:action, as `fs:ensure_file`.",
        },
        "dag": {
            **_object({"tasks": {"type": "array", "minItems": 1, "items": _DAG_TASK}}, "tasks"),
            "description": "Calls instead of code; those that do not wait for each other are made "
            "side by side. The result is every task's output by its id.",
        },
        "tool": {
            **_object({"toolId": _TOOL_ID, "defaultArgs": {"type": "object"}}, "toolId"),
            "description": "One tool instead of code: called with defaultArgs, overridden by args.",
        },
        "capability": _text("Name or id of a capability to run instead of code."),
        "args": {
            "type": "object",
            "description": "Arguments: `args` inside the code, its free names as variables too.",
        },
        "context": {"type": "object", "description": "Another word for args; give one of them."},
        "idempotency_key": _text("Asking again under the same key gets the first answer."),
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Seconds that the program may run.",
        },
        "per_layer_validation": {
            "type": "boolean",
            "description": "For a dag: between layers with a tool that is not read-only or needs "
            "approval the run waits for a person, who sees what was done and what comes next.",
        },
        "dryRun": {
            "type": "boolean",
            "description": "Try it: tools that are not marked read-only are not called, mocks "
            "answer. Needs no approval for them; nothing is learned.",
        },
        "dryRunMocks": {
            "type": "object",
            "description": "What mocks answer, by `server:tool`: a value, or a list of values for "
            "call after call. Without: {success: true, mocked: true}.",
        },
    }
)

_DISCOVER_SCHEMA = _object(
    {
        "intent": _text("What you want to do, in your own words.", minLength=1, maxLength=4000),
        "filter": _object(
            {
                "type": {"enum": ["tool", "capability", "all"], "default": "all"},
                "minScore": {"type": "number", "minimum": 0, "maximum": 1, "default": 0},
            }
        ),
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "offset": {"type": "integer", "minimum": 0, "default": 0},
    },
    "intent",
)

LISTINGS: tuple[JsonObject, ...] = (
    {
        "name": EXECUTE,
        "title": "Run code or a capability",
        "description": _EXECUTE_DESCRIPTION,
        "inputSchema": _EXECUTE_SCHEMA,
        "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    },
    {
        "name": DISCOVER,
        "title": "Find tools and capabilities",
        "description": _DISCOVER_DESCRIPTION,
        "inputSchema": _DISCOVER_SCHEMA,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
)


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class DiscoverFilter(_Strict):
    """What may be among the hits."""

    type: Literal["tool", "capability", "all"] = "all"
    min_score: float = Field(default=0.0, ge=0, le=1, alias="minScore")


class DiscoverArguments(_Strict):
    """The arguments of `pml_discover`."""

    intent: Intent
    filter: DiscoverFilter = DiscoverFilter()
    limit: int = Field(default=10, ge=1, le=100)
    offset: int = Field(default=0, ge=0)

    def query(self, scope: Scope) -> Discover:
        """The question to ask the registry."""
        return Discover(
            scope=scope,
            intent=self.intent,
            type=self.filter.type,
            min_score=self.filter.min_score,
            limit=self.limit,
            offset=self.offset,
        )
