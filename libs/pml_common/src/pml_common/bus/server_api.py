"""JetStream's API in the server's own JSON, so that no field is lost that the client does not know.

A configuration of a stream or consumer is compared field by field with the wanted one, also where
the wanted value is the server's default: a `republish` that nobody configured is a difference.
"""

import json
from collections.abc import Mapping
from typing import Any

from nats.aio.client import Client
from nats.js.errors import APIError, NotFoundError

from pml_common.bus.connection import REPLY_TIMEOUT_S

Config = Mapping[str, Any]
Differences = Mapping[str, tuple[object, object]]
"""Current and wanted value by field; None is the default."""

_OPERATORS = frozenset(
    {"name", "durable_name", "description", "metadata", "placement", "compression", "first_seq"}
)
"""Names, and fields that are the operator's to set."""
_DEFAULTS: Config = {
    "retention": "limits",
    "discard": "old",
    "duplicate_window": int(120e9),
    "persist_mode": "default",
    "deliver_policy": "all",
    "replay_policy": "instant",
    "max_waiting": 512,
}
_UNLIMITED = -1
_LIMITED_BY_DEFAULT = frozenset({"max_ack_pending"})
_NANOSECONDS = ("max_age", "duplicate_window", "ack_wait")


async def ask(
    client: Client, verb: str, body: Config | None = None, timeout: float = REPLY_TIMEOUT_S
) -> dict[str, Any]:
    """Send one request, such as `STREAM.INFO.<name>`, and return the answer. Raises NatsError:
    NotFoundError for what does not exist, APIError for any other refusal."""
    request = b"" if body is None else json.dumps(body).encode()
    reply = await client.request(f"$JS.API.{verb}", request, timeout=timeout)
    answer = json.loads(reply.data)
    if "error" in answer:
        raise APIError.from_error(answer["error"])
    return answer


async def find(
    client: Client, verb: str, timeout: float = REPLY_TIMEOUT_S
) -> dict[str, Any] | None:
    """Return what is there, or None."""
    try:
        return await ask(client, verb, timeout=timeout)
    except NotFoundError:
        return None


def differences(found: Config, wanted: Config) -> Differences:
    """Return the fields that differ."""
    fields = dict.fromkeys((*wanted, *found))
    pairs = {name: (_value(name, found), _value(name, wanted)) for name in fields}
    return {
        name: (is_now, should_be)
        for name, (is_now, should_be) in pairs.items()
        if name not in _OPERATORS and is_now != should_be
    }


def updated(found: Config, changes: Differences) -> Config:
    """Return a configuration with its differences set as wanted."""
    kept = {name: value for name, value in found.items() if name not in changes}
    return kept | {name: to for name, (_, to) in changes.items() if to is not None}


def shown(field: str, value: object) -> object:
    """Return a field's value for a reader: durations in seconds."""
    return value / 1e9 if field in _NANOSECONDS and isinstance(value, int) else value


def _value(name: str, config: Config) -> object:
    """Return a field's value; None for the server's default."""
    value = config.get(name)
    unlimited = value == _UNLIMITED and name not in _LIMITED_BY_DEFAULT
    return None if not value or unlimited or value == _DEFAULTS.get(name) else value
