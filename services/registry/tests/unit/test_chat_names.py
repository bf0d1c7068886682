"""A language model that proposes names, behind a local server that speaks its protocol."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from pydantic import JsonValue

from pml_registry.adapters.chat_names import ChatNameModel
from pml_registry.domain.curation import Unnamed
from services.registry.tests.support.json_server import json_server
from services.registry.tests.unit.test_curation_rules import unnamed

Answer = Callable[[], Awaitable[tuple[str, bytes]]]
Seen = list[tuple[str, JsonValue]]


def capabilities(count: int) -> list[Unnamed]:
    return [unnamed(f"intent {at}", "fs:read", key=str(at)) for at in range(count)]


@asynccontextmanager
async def endpoint(answer: Answer) -> AsyncGenerator[tuple[str, Seen]]:
    """Serve chat completions; yield the URL, and the heads and bodies of what was asked."""
    seen: Seen = []

    async def handle(head: str, body: JsonValue) -> tuple[str, bytes]:
        seen.append((head, body))
        return await answer()

    async with json_server(handle) as url:
        yield url, seen


def completion(content: str) -> bytes:
    message = {"role": "assistant", "content": content}
    return json.dumps({"choices": [{"message": message}]}).encode()


async def propose(url: str, asked: list[Unnamed], key: str | None = None) -> dict[str, str]:
    model = ChatNameModel(url, "small", key, timeout_s=5)
    found = await model.propose(asked)
    by_id = {each.capability_id: each.description for each in asked}
    return {by_id[id_]: name for id_, name in found.items()}


async def test_each_program_gets_the_name_that_the_model_wrote() -> None:
    async def answer() -> tuple[str, bytes]:
        text = 'Here you are:\n```json\n{"p1": " fs:read_a ", "p2": 7, "p9": "fs:x"}\n```'
        return "200 OK", completion(text)

    async with endpoint(answer) as (url, seen):
        assert await propose(url, capabilities(2), "secret") == {"intent 0": "fs:read_a"}
    ((head, body),) = seen
    assert head.startswith("POST /v1/chat/completions ")
    assert "authorization: bearer secret" in head.lower()
    assert isinstance(body, dict)
    assert (body["model"], body["temperature"]) == ("small", 0)


async def test_many_programs_are_asked_for_in_parts() -> None:
    async def answer() -> tuple[str, bytes]:
        return "200 OK", completion('{"p1": "fs:one"}')

    async with endpoint(answer) as (url, seen):
        assert list(await propose(url, capabilities(21))) == ["intent 0", "intent 20"]
    assert len(seen) == 2
    assert "authorization" not in seen[0][0].lower()


BAD = {
    "an error": (b"{}", "503 Service Unavailable"),
    "no JSON": (b"<html>", "200 OK"),
    "no completion": (b'{"choices": 1}', "200 OK"),
    "no choice": (b'{"choices": []}', "200 OK"),
    "no object": (completion("fs:read"), "200 OK"),
    "a broken object": (completion("{p1: fs}"), "200 OK"),
    "half a character": (completion(r'{"p1\ud800": "fs:x"}'), "200 OK"),
    "too much": (completion("x" * 70_000), "200 OK"),
}


@pytest.mark.parametrize(("body", "status"), BAD.values(), ids=BAD)
async def test_without_a_proper_answer_there_is_no_name(
    body: bytes, status: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer() -> tuple[str, bytes]:
        return status, body

    async with endpoint(answer) as (url, _):
        assert await propose(url, capabilities(1)) == {}
    assert "pydantic" not in caplog.text


async def test_nobody_waits_for_a_model_that_does_not_answer() -> None:
    released = asyncio.Event()

    async def answer() -> tuple[str, bytes]:
        await released.wait()
        return "200 OK", b"{}"

    async with endpoint(answer) as (url, _):
        model = ChatNameModel(url, "small", None, timeout_s=0.05)
        assert await model.propose(capabilities(1)) == {}
        released.set()


async def test_an_endpoint_that_is_away_gives_no_name() -> None:
    async with endpoint(nothing) as (url, _):
        pass
    assert await propose(url, capabilities(1)) == {}


async def nothing() -> tuple[str, bytes]:
    return "200 OK", b"{}"
