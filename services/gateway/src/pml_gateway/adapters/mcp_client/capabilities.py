"""Capabilities of our own clients, declared to upstream servers with each request.

A session of the SDK declares the same for all its requests; but a connection to a server is shared
by many clients of ours. So the declaration travels in the request under a key of our own, and takes
the SDK's place where the request is written.
"""

from typing import Any, Final, cast

from mcp.shared.message import SessionMessage
from mcp_types import CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY, JSONRPCRequest

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.log_levels import LogLevel

_OURS: Final = "pml/client-capabilities"


def with_capabilities(params: JsonObject, capabilities: JsonObject) -> JsonObject:
    """Return a request's parameters with what the client of this request can be asked for."""
    return {**params, "_meta": meta_with(capabilities)}


def meta_with(capabilities: JsonObject, level: LogLevel | None = None) -> JsonObject:
    """Return the `_meta` of a request whose client can be asked for this, and wants log messages
    of this level and above."""
    wants: JsonObject = {} if level is None else {LOG_LEVEL_META_KEY: level}
    return {_OURS: capabilities, **wants}


def declared(item: SessionMessage) -> SessionMessage:
    """Return a message that declares the capabilities of its own client, if it carries them.
    Servers of revisions with a handshake were told there, and ignore the key."""
    message = item.message
    params = message.params if isinstance(message, JSONRPCRequest) else None
    meta = (params or {}).get("_meta")
    if not isinstance(message, JSONRPCRequest) or not isinstance(meta, dict) or _OURS not in meta:
        return item
    told = cast(dict[str, Any], meta)
    kept = {key: value for key, value in told.items() if key != _OURS}
    if CLIENT_CAPABILITIES_META_KEY in kept:
        kept[CLIENT_CAPABILITIES_META_KEY] = told[_OURS]
    changed = message.model_copy(update={"params": {**(params or {}), "_meta": kept}})
    return SessionMessage(changed, item.metadata)
