"""Converts between MCP's results (`CallToolResult`, as JSON) and the values of programs."""

import json
from typing import Final, TypeGuard

from pydantic import JsonValue

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.servers.tool_meta import passed_meta
from pml_gateway.domain.tool_calls.exact_integers import with_exact_integers

BLOCKS: Final = "_content"
"""Key that an object of `structuredContent` gets in a program for the content blocks beside it."""

_WHOLE: Final = frozenset({"content", "structuredContent"})


class Answered(ToolOutcome):
    """The outcome of a call that its server answered. `answer` is its `CallToolResult` as it is,
    for callers over MCP; `plain` is the outcome for a program."""

    answer: JsonObject

    @property
    def plain(self) -> ToolOutcome:
        """The outcome without the answer."""
        return ToolOutcome(
            status=self.status,
            result=self.result,
            message=self.message,
            fault=self.fault,
            code=self.code,
        )


def outcome_of(result: JsonObject) -> Answered:
    """Return the outcome in a `CallToolResult`.

    Its value is `structuredContent` if present, else the text of a single text block, else the list
    of content blocks, else null. Blocks beside `structuredContent` that are no text are its field
    `_content`, with their captions; where it can have no such field, the value is an object of
    `structuredContent` and `content`. Integers that a program cannot represent are their digits.
    """
    if not_a_result(result):
        message, code = _why_none(result)
        return Answered(status="tool_error", message=message, code=code, answer=result)
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    structured = result.get("structuredContent")
    if result.get("isError") is True:
        message = _error_text(blocks, structured)
        return Answered(status="tool_error", message=message, answer=result)
    value = _value_of(blocks) if structured is None else _with_blocks(structured, blocks)
    return Answered(status="ok", result=with_exact_integers(value), answer=result)


def not_a_result(answer: JsonObject) -> bool:
    """Whether the answer to a call asks for input, or is an error of the protocol."""
    return answer.get("resultType") == "input_required" or "error" in answer


def inputs_asked(outcome: ToolOutcome) -> tuple[dict[str, JsonObject], str | None] | None:
    """Return what a tool's server asks for in answer to a call, by key, and its state; None where
    it asks for nothing."""
    if not isinstance(outcome, Answered) or outcome.answer.get("resultType") != "input_required":
        return None
    requests, state = outcome.answer.get("inputRequests"), outcome.answer.get("requestState")
    asked = requests.items() if isinstance(requests, dict) else ()
    return (
        {key: request for key, request in asked if isinstance(request, dict)},
        state if isinstance(state, str) else None,
    )


def _why_none(answer: JsonObject) -> tuple[str, int | None]:
    match answer:
        case {"error": {"message": str() as message, "code": int() as code}}:
            return message, code
        case _:
            asked = answer.get("inputRequests")
            named = ", ".join(asked) if isinstance(asked, dict) else "its state"
            return f"the server asks for input: {named}", None


def answered_result(answer: JsonObject) -> JsonObject:
    """Build the result for a caller over MCP from the answer of the tool's own server. An object of
    `structuredContent` alone goes out as text, too: not every client reads it."""
    content = answer.get("content")
    structured = answer.get("structuredContent")
    blocks: list[JsonValue] = content if isinstance(content, list) else []
    if not blocks and structured is not None:
        blocks = [text_of(structured)]
    result: JsonObject = {"content": blocks, "isError": answer.get("isError") is True}
    # The older revisions allow nothing but an object.
    if isinstance(structured, dict):
        result["structuredContent"] = structured
    meta = passed_meta(answer.get("_meta"))
    return {**result, "_meta": meta} if meta else result


def result_of(value: JsonValue, *, structured: bool) -> JsonObject:
    """Build the `CallToolResult` of a program's value: the inverse of `outcome_of`.

    With `structured`, an object goes into `structuredContent` too; every other value is text alone,
    because the older revisions allow nothing but an object there.
    """
    value, blocks = _without_blocks(value)
    result: JsonObject = {"content": [*_content(value), *blocks], "isError": False}
    if structured and isinstance(value, dict):
        result["structuredContent"] = value
    return result


def error_result(message: str, detail: JsonObject | None = None) -> JsonObject:
    """Build the `CallToolResult` of a failed call."""
    result: JsonObject = {"content": [_text(message)], "isError": True}
    if detail is not None:
        result["structuredContent"] = detail
    return result


def text_of(value: JsonValue, *, compact: bool = False) -> JsonObject:
    """Build the text block with the JSON of a value; `compact` is without blanks."""
    separators = (",", ":") if compact else None
    return _text(json.dumps(value, ensure_ascii=False, separators=separators))


def with_blocks_taken_out(value: JsonValue, taken: list[JsonValue]) -> JsonValue:
    """Return a value in which each image, sound and embedded resource is a note of which block of
    the content it is, after the one with the value; the blocks are appended to `taken`."""
    if isinstance(value, list):
        return [with_blocks_taken_out(item, taken) for item in value]
    if not isinstance(value, dict):
        return value
    if not is_media(value):
        return {key: with_blocks_taken_out(item, taken) for key, item in value.items()}
    taken.append(value)
    note: JsonObject = {"type": value["type"], "content_block": len(taken)}
    return note | ({"mimeType": value["mimeType"]} if "mimeType" in value else {})


def is_media(value: JsonObject) -> bool:
    """Whether a value is a valid content block with data of its own."""
    match value:
        case {"type": "image" | "audio", "data": str(), "mimeType": str()}:
            return True
        case {"type": "resource", "resource": {"uri": str(), "text": str()}}:
            return True
        case {"type": "resource", "resource": {"uri": str(), "blob": str()}}:
            return True
        case _:
            return False


def _value_of(blocks: list[JsonValue]) -> JsonValue:
    texts = _texts(blocks)
    if len(blocks) == 1 and len(texts) == 1:
        return texts[0]
    return blocks or None


def _with_blocks(structured: JsonValue, blocks: list[JsonValue]) -> JsonValue:
    if len(_texts(blocks)) == len(blocks):
        return structured  # texts say the same again, for models
    beside = [block for block in blocks if not _repeats(block, structured)]
    if isinstance(structured, dict) and BLOCKS not in structured:
        return {**structured, BLOCKS: beside}
    return {"content": beside, "structuredContent": structured}


def _without_blocks(value: JsonValue) -> tuple[JsonValue, list[JsonValue]]:
    if not isinstance(value, dict):
        return value, []
    if value.keys() == _WHOLE:
        blocks, rest = value["content"], value["structuredContent"]
    else:
        blocks = value.get(BLOCKS)
        rest = {key: item for key, item in value.items() if key != BLOCKS}
    if not _are_blocks(blocks):
        return value, []
    return rest, blocks


def _content(value: JsonValue) -> list[JsonValue]:
    if value is None:
        return []
    if isinstance(value, str):
        return [_text(value)]
    if _are_blocks(value):
        return value
    return [text_of(value)]


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _are_blocks(value: JsonValue) -> TypeGuard[list[JsonValue]]:
    return isinstance(value, list) and bool(value) and all(map(_is_block, value))


def _is_block(item: JsonValue) -> bool:
    match item:
        case {"type": "text", "text": str()}:
            return True
        case {"type": "resource_link", "uri": str(), "name": str()}:
            return True
        case dict():
            return is_media(item)
        case _:
            return False


def _repeats(block: JsonValue, structured: JsonValue) -> bool:
    """Whether a block is the text that servers add for clients that read no structured content."""
    match block:
        case {"type": "text", "text": str() as text}:
            try:
                return json.loads(text) == structured
            except ValueError:
                return False
        case _:
            return False


def _texts(blocks: list[JsonValue]) -> list[str]:
    found = [block.get("text") for block in blocks if isinstance(block, dict)]
    return [text for text in found if isinstance(text, str)]


def _error_text(blocks: list[JsonValue], structured: JsonValue) -> str:
    texts = _texts(blocks)
    if structured is not None and not any(_repeats(_text(text), structured) for text in texts):
        texts.append(json.dumps(structured, ensure_ascii=False))
    return "\n".join(texts) or "the tool reported an error and gave no message"
