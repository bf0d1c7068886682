"""Tools and a prompt of the fixture server that ask the client for input before they answer."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from secrets import token_bytes
from typing import Any, Final

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequest,
    InputRequiredResult,
    InputResponses,
    ListRootsRequest,
    PromptMessage,
    SamplingMessage,
)

from tests.conformance.fixtures import text

Context = ServerRequestContext[Any, Any]
Answer = CallToolResult | InputRequiredResult
Run = Callable[[Context, CallToolRequestParams], Awaitable[Answer]]

_KEY: Final = token_bytes(32)


def _form(message: str, properties: dict[str, Any], *required: str) -> InputRequest:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": [*required]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(prompt: str) -> InputRequest:
    message = SamplingMessage(role="user", content=text(prompt))
    return CreateMessageRequest(
        params=CreateMessageRequestParams(messages=[message], max_tokens=100)
    )


_TEXT: Final = {"type": "string"}
_NAME: Final = _form("What is your name?", {"name": _TEXT}, "name")
_ROOTS: Final = ListRootsRequest()


def _done(params: CallToolRequestParams, what: str) -> CallToolResult:
    said = {key: each.model_dump(mode="json") for key, each in _given(params).items()}
    return CallToolResult(content=[text(f"{what}: {said}")])


def _given(params: CallToolRequestParams | GetPromptRequestParams) -> InputResponses:
    return params.input_responses or {}


def _signed(state: str) -> str:
    return f"{state}.{hmac.new(_KEY, state.encode(), hashlib.sha256).hexdigest()}"


def _checked(signed: str | None) -> str:
    state = (signed or "").partition(".")[0]
    if not hmac.compare_digest(_signed(state), signed or ""):
        raise MCPError(INVALID_PARAMS, "requestState is not one of this server")
    return state


def _asks(what: str, *, state: str | None = None, **asked: InputRequest) -> Run:
    """Return a tool that asks for all of these at once, and says what it got."""

    async def run(ctx: Context, params: CallToolRequestParams) -> Answer:
        if asked.keys() <= _given(params).keys():
            if state is not None:
                _checked(params.request_state)
            return _done(params, what)
        signed = None if state is None else _signed(state)
        return InputRequiredResult(input_requests=asked, request_state=signed)

    return run


def _asks_with(ask: Callable[[dict[str, Any]], InputRequest]) -> Run:
    """Return a tool that asks for what its arguments say."""

    async def run(ctx: Context, params: CallToolRequestParams) -> Answer:
        if "asked" in _given(params):
            return _done(params, "answered")
        return InputRequiredResult(input_requests={"asked": ask(params.arguments or {})})

    return run


async def _asks_in_rounds(ctx: Context, params: CallToolRequestParams) -> Answer:
    if params.request_state is None:
        step = _form("Step 1: What is your name?", {"name": _TEXT}, "name")
        return InputRequiredResult(input_requests={"step1": step}, request_state=_signed("one"))
    if _checked(params.request_state) == "one":
        step = _form("Step 2: What is your favorite color?", {"color": _TEXT}, "color")
        return InputRequiredResult(input_requests={"step2": step}, request_state=_signed("two"))
    return _done(params, "both rounds")


async def _asks_what_it_may(ctx: Context, params: CallToolRequestParams) -> Answer:
    """Ask only for what the client declared that it can answer."""
    if _given(params):
        return _done(params, "capabilities-ok")
    can, asked = ctx.session.client_capabilities, dict[str, InputRequest]()
    if can is not None and can.elicitation is not None:
        asked["elicit_input"] = _NAME
    if can is not None and can.sampling is not None:
        asked["sample_input"] = _sample("Say anything.")
    if not asked:
        return CallToolResult(content=[text("the client declared nothing")])
    return InputRequiredResult(input_requests=asked, request_state=_signed("capable"))


async def require_sampling(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Refuse a client that cannot sample."""
    can = ctx.session.client_capabilities
    if can is None or can.sampling is None:
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is required", needed)
    return CallToolResult(content=[text("the client can sample")])


def ask_for_prompt(params: GetPromptRequestParams) -> GetPromptResult | InputRequiredResult:
    """Ask for the prompt's context, then return the prompt."""
    if "user_context" not in _given(params):
        asked = _form("What context should the prompt use?", {"context": _TEXT}, "context")
        return InputRequiredResult(input_requests={"user_context": asked})
    said = str(_given(params)["user_context"].model_dump(mode="json"))
    return GetPromptResult(messages=[PromptMessage(role="user", content=text(said))])


def _defaults() -> dict[str, Any]:
    return {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    }


def _enums() -> dict[str, Any]:
    options = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{at}", "title": f"{nth} Option"}
        for at, nth in enumerate(("First", "Second", "Third"), 1)
    ]
    legacy = ["Option One", "Option Two", "Option Three"]
    return {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": legacy},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }


_USER: Final = {"username": _TEXT, "email": _TEXT}
_RESULT: Final = "input_required_result"

ASKING: Final[dict[str, Run]] = {
    "sampling": _asks_with(lambda given: _sample(str(given.get("prompt")))),
    "elicitation": _asks_with(
        lambda given: _form(str(given.get("message")), _USER, "username", "email")
    ),
    "elicitation_sep1034_defaults": _asks("completed", asked=_form("Defaults", _defaults())),
    "elicitation_sep1330_enums": _asks("completed", asked=_form("Enums", _enums())),
    "streaming_elicitation": _asks("streamed", user_name=_NAME),
    f"{_RESULT}_elicitation": _asks("Hello", user_name=_NAME),
    f"{_RESULT}_sampling": _asks(
        "sampled", capital_question=_sample("What is the capital of France?")
    ),
    f"{_RESULT}_list_roots": _asks("roots", client_roots=_ROOTS),
    f"{_RESULT}_request_state": _asks(
        "state-ok", state="confirm", confirm=_form("Confirm?", {"ok": {"type": "boolean"}}, "ok")
    ),
    f"{_RESULT}_multiple_inputs": _asks(
        "all",
        state="all",
        user_name=_NAME,
        greeting=_sample("Generate a greeting"),
        client_roots=_ROOTS,
    ),
    f"{_RESULT}_multi_round": _asks_in_rounds,
    f"{_RESULT}_tampered_state": _asks("untampered", state="whole", confirm=_NAME),
    f"{_RESULT}_capabilities": _asks_what_it_may,
}
