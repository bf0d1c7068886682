"""The `mcpServers` file: its entries, each read alone, so that one with a fault stops no other."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, cast

import jsonc
from pydantic import JsonValue, ValidationError

from pml_common.contracts.display_names import RESERVED_NAMESPACES
from pml_common.contracts.fault_words import faults_of
from pml_common.contracts.server_names import safe_name
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.servers.references import Surroundings, fill_in, inputs_of
from pml_gateway.domain.servers.server_config import HttpServer, ServerConfig, StdioServer

_ROOTS: Final = ("mcpServers", "servers")
"""The key of the entries: of most clients, of VS Code."""
_SAME: Final = {
    "httpUrl": "url",
    "serverUrl": "url",
    "transport": "type",
    "transportType": "type",
}
"""Fields of other clients, and ours of the same meaning."""
_APPROVING: Final = ("alwaysAllow", "autoApprove", "autoAllow")
_SILENT: Final = ("description", "name", "title", "icon", "gallery", "version", "note")
"""Fields that only describe."""


class ServersInvalid(ValueError):
    """The file is invalid; `faults` say where and what."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@dataclass(frozen=True)
class ServerEntry:
    """An entry of the file. `name` addresses its server, `title` is its name in the file.

    `server` is None where the entry is `disabled`, or has `faults`; `notes` are parts of it without
    effect.
    """

    name: str
    title: str
    server: ServerConfig | None = None
    disabled: bool = False
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_servers(text: str, around: Surroundings) -> tuple[ServerEntry, ...]:
    """Return the entries, in the file's order. The file may have comments and trailing commas, and
    `inputs`.

    Raises ServersInvalid where it is no such file at all.
    """
    document = _document(text)
    root, found = _entries(document)
    inputs = {**inputs_of(document), **around.inputs}
    around = Surroundings(around.variables, around.places, inputs)
    entries: list[ServerEntry] = []
    taken: dict[str, str] = {}
    for number, (title, entry) in enumerate(found.items(), 1):
        one = _read(title, entry, f"{root}.{title}", around)
        if one.disabled:
            entries.append(one)
            continue
        if one.name in taken:
            fault = (
                f"{root}.{title}: its safe form {one.name!r} is that of {taken[one.name]!r}, which "
                "comes first; choose another name"
            )
            one = ServerEntry(f"{one.name}#{number}", title, faults=(fault,))
        taken[one.name] = title
        entries.append(one)
    return tuple(entries)


def servers_in(entries: Collection[ServerEntry]) -> dict[str, ServerConfig]:
    """Return the servers to connect to, by name."""
    return {entry.name: entry.server for entry in entries if entry.server is not None}


def _document(text: str) -> JsonObject:
    try:
        document = cast(JsonValue, jsonc.loads(text.removeprefix("\ufeff")))
    except (ValueError, RecursionError) as error:
        raise ServersInvalid((f"not JSON: {error}",)) from error
    return document if isinstance(document, dict) else {}


def _entries(document: JsonObject) -> tuple[str, JsonObject]:
    for root in _ROOTS:
        servers = document.get(root)
        if isinstance(servers, dict):
            return root, servers
    raise ServersInvalid(('must be an object with "mcpServers": {"<name>": {...}}',))


def _read(title: str, entry: JsonValue, where: str, around: Surroundings) -> ServerEntry:
    name = safe_name(title)
    if isinstance(entry, dict) and (entry.get("disabled") is True or entry.get("enabled") is False):
        return ServerEntry(name, title, disabled=True)
    try:
        server = _server(name, entry, where, around)
    except ServersInvalid as invalid:
        return ServerEntry(name, title, faults=invalid.faults)
    return ServerEntry(name, title, server, notes=_notes(server))


def _server(name: str, entry: JsonValue, where: str, around: Surroundings) -> ServerConfig:
    if name in RESERVED_NAMESPACES:
        raise ServersInvalid((f"{where}: this name is taken by PML's own tools; choose another",))
    if not isinstance(entry, dict):
        raise ServersInvalid((f"{where}: must be an object",))
    given = _renamed(entry)
    if ("command" in given) == ("url" in given):
        raise ServersInvalid((f'{where}: needs either "command" (stdio) or "url" (HTTP)',))
    faults: list[str] = []
    try:
        filled = fill_in(given, where, around, faults)
    except RecursionError:
        raise ServersInvalid((f"{where}: is nested too deeply",)) from None
    if faults:
        raise ServersInvalid(tuple(faults))
    model = StdioServer if "command" in given else HttpServer
    try:
        return model.model_validate(filled)
    except ValidationError as error:
        raise ServersInvalid(tuple(f"{where}.{fault}" for fault in faults_of(error))) from None


def _renamed(entry: Mapping[str, JsonValue]) -> JsonObject:
    """Return an entry with the fields that other clients name otherwise under our names."""
    renamed = {_SAME[name]: value for name, value in entry.items() if name in _SAME}
    others = {name: value for name, value in entry.items() if name not in _SAME}
    return {**renamed, **others}


def _notes(server: ServerConfig) -> tuple[str, ...]:
    notes: list[str] = []
    for field in server.ignored_fields:
        if field in _APPROVING:
            notes.append(f"{field} has no effect here: policy.json says what runs without approval")
        elif field == "envFile":
            notes.append("envFile is not read: write its variables into env")
        elif field not in _SILENT:
            notes.append(f"{field} has no effect here")
    return tuple(notes)
