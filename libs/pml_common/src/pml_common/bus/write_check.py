"""Check that the server stores messages, by a write to each stream.

A server whose disk was full for one write answers no publish to that stream until it is restarted;
its other streams and its API go on answering. So each stream gets a message of its own: empty, read
by no consumer, expired after a second.
"""

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import NotRequired, TypedDict
from uuid import uuid4

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.js.api import Header

from pml_common.bus import names
from pml_common.contracts import catalog

WITHIN_S = 4.0
_GONE_AFTER = {Header.MSG_TTL.value: "1s"}
_OUT_OF_RESOURCES = 500
"""The lowest status that means that the server failed; lower ones mean that we lack permission."""


def subjects_of(service: str) -> Sequence[str]:
    """Return the subjects that a service checks: each stream it publishes to, and the payloads."""
    return [*messages_of(service), _payloads(service)]


def messages_of(service: str) -> Sequence[str]:
    """Return those of the streams of messages, which are always the same."""
    checked = {
        names.write_check(each.kind, each.owner)
        for each in catalog.MESSAGES
        if each.sender == service and each.is_stored
    }
    return sorted(checked)


def every_subject() -> Sequence[str]:
    """Return the subjects that an operator checks: every stream."""
    checked = {
        names.write_check(each.kind, each.owner) for each in catalog.MESSAGES if each.is_stored
    }
    return [
        *sorted(checked),
        _payloads("operator"),
        f"$KV.{names.CACHE_BUCKET}.write-check",
    ]


def _payloads(who: str) -> str:
    """Return a new subject for each check: a subject of bodies takes one message."""
    return f"{names.bodies_of(who)}.write-check.{uuid4().hex}"


async def refusal(
    client: Client, subjects: Iterable[str], *, must_exist: bool = False
) -> str | None:
    """Return why the server does not store a message on one of the subjects; None if it does on
    all, or lacks the stream and `must_exist` is false."""
    found = await asyncio.gather(*(_refused(client, each, must_exist) for each in subjects))
    refused = [each for each in found if each is not None]
    return f"NATS stores nothing: {'; '.join(refused)}" if refused else None


async def _refused(client: Client, subject: str, must_exist: bool) -> str | None:
    try:
        reply = await client.request(subject, b"", timeout=WITHIN_S, headers=_GONE_AFTER)
    except NoRespondersError:
        # The stream does not exist or, in a cluster, has no leader.
        return f"{subject}: no server stores it" if must_exist else None
    except (NatsError, TimeoutError) as error:
        return f"{subject}: {error}"
    answer: _Answer = json.loads(reply.data or b"{}")
    if "error" in answer and answer["error"]["code"] >= _OUT_OF_RESOURCES:
        return f"{subject}: {answer['error']['description']}"
    return None


class _Fault(TypedDict):
    code: int
    description: str


class _Answer(TypedDict):
    error: NotRequired[_Fault]
