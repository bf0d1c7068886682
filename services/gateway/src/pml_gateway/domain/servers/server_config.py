"""The `mcpServers` file: the configured MCP servers and their connections."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Literal, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)
from pydantic_core import ErrorDetails

from pml_common.contracts.display_names import RESERVED_NAMESPACES
from pml_common.contracts.tool import JsonObject

SERVER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")

PASSED_ON = (
    "LANG",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "DENO_DIR",
    "UV_CACHE_DIR",
    "npm_config_cache",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "NPM_CONFIG_REGISTRY",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
)
"""Variables that a stdio server needs to reach what the gateway reaches. Nothing else of the
gateway's environment is passed on, so that no server gets its secrets."""

_LEAST_IN_MS = 10_000
_DURATION = re.compile(r"(?P<number>\d{1,9}(?:\.\d{1,9})?)(?P<unit>ms|s|m)")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0}

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ServersInvalid(ValueError):
    """The file is invalid; `faults` name the entry, the field and the fault."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def _http_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http:// or https:// URL with a host")
    return url


def _seconds(given: object) -> object:
    """Return a time limit in seconds. Clients differ: one of 10,000 or more is in milliseconds; a
    text has its unit."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        return given / 1000 if given >= _LEAST_IN_MS else given
    found = _DURATION.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise ValueError("must be a number of seconds, or a text with a unit, as 500ms, 30s or 5m")
    return float(found["number"]) * _UNITS_S[found["unit"]]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    disabled: bool = False
    trust: Literal["hints", "none"] | None = None
    """Whether its hints count; None: see `server_trust`."""

    timeout: Annotated[float | None, BeforeValidator(_seconds), Field(gt=0)] = None
    """Seconds that a call may take once it is sent; None: as long as its caller waits."""

    @property
    def ignored_fields(self) -> tuple[str, ...]:
        """Fields of other programs, without effect here."""
        return tuple(sorted(self.model_extra or {}))


class StdioServer(_Entry):
    """A server that runs as a child process; `env` is added to the variables in PASSED_ON."""

    type: Literal["stdio"] = "stdio"
    command: Annotated[str, Field(min_length=1)]
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    cwd: str | None = None


class HttpServer(_Entry):
    """A server reached by Streamable HTTP; `headers` are sent with every request."""

    type: Literal["http", "streamable-http", "streamableHttp"] = "http"
    url: Annotated[str, AfterValidator(_http_url)]
    headers: dict[str, str] = Field(default_factory=dict, repr=False)


ServerConfig = StdioServer | HttpServer


def parse_servers(text: str, variables: Mapping[str, str]) -> dict[str, ServerConfig]:
    """Return the enabled servers by name; `${NAME}` in any value becomes `variables[NAME]`.

    Raises ServersInvalid with all faults.
    """
    servers: dict[str, ServerConfig] = {}
    faults: list[str] = []
    for name, entry in _entries(text).items():
        if isinstance(entry, dict) and entry.get("disabled") is True:
            continue
        try:
            servers[name] = _server(name, entry, variables)
        except ServersInvalid as invalid:
            faults += invalid.faults
    if faults:
        raise ServersInvalid(tuple(faults))
    return servers


def child_environment(server: StdioServer, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a stdio server's process, beside the few that every process gets
    (PATH, HOME…)."""
    return {name: environment[name] for name in PASSED_ON if name in environment} | server.env


def _entries(text: str) -> JsonObject:
    try:
        document = cast(JsonValue, json.loads(text))
    except ValueError as error:
        raise ServersInvalid((f"not JSON: {error}",)) from error
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ServersInvalid(('must be an object with "mcpServers": {"<name>": {...}}',))
    return servers


def _server(name: str, entry: JsonValue, variables: Mapping[str, str]) -> ServerConfig:
    where = f"mcpServers.{name}"
    if not SERVER_NAME.fullmatch(name):
        rule = "use a-z, 0-9, _ and -, starting with a letter or digit, at most 63"
        raise ServersInvalid((f"{where}: not a server name: {rule}",))
    if name in RESERVED_NAMESPACES:
        raise ServersInvalid((f"{where}: this name is taken by PML's own tools; choose another",))
    if not isinstance(entry, dict):
        raise ServersInvalid((f"{where}: must be an object",))
    if ("command" in entry) == ("url" in entry):
        raise ServersInvalid((f'{where}: needs either "command" (stdio) or "url" (HTTP)',))
    faults: list[str] = []
    expanded = _expand(entry, where, variables, faults)
    if faults:
        raise ServersInvalid(tuple(faults))
    model = StdioServer if "command" in entry else HttpServer
    try:
        return model.model_validate(expanded)
    except ValidationError as error:
        raise ServersInvalid(tuple(_fault(where, detail) for detail in error.errors())) from None


def _expand(
    value: JsonValue, where: str, variables: Mapping[str, str], faults: list[str]
) -> JsonValue:
    if isinstance(value, dict):
        return {k: _expand(v, f"{where}.{k}", variables, faults) for k, v in value.items()}
    if isinstance(value, list):
        return [_expand(v, f"{where}.{i}", variables, faults) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value
    missing = [name for name in _VARIABLE.findall(value) if name not in variables]
    if missing:
        faults += [f"{where}: ${{{name}}} is not set in the environment" for name in missing]
        return value
    return _VARIABLE.sub(lambda found: variables[found[1]], value)


def _fault(where: str, detail: ErrorDetails) -> str:
    field = ".".join(str(part) for part in detail["loc"])
    return f"{where}.{field}: {detail['msg']}"
