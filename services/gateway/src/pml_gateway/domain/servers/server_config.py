"""The configuration of one upstream MCP server: its connection and its limits."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)

from pml_gateway.domain.servers.tool_lists import ToolLists, as_tool_lists

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


def _trust(given: object) -> object:
    """Return whether hints count. Elsewhere true or false says that nobody is asked, which here is
    for the policy to say."""
    return None if isinstance(given, bool) else given


def _transport(given: object) -> object:
    """Return the name of an HTTP transport: clients write Streamable HTTP in several ways."""
    plain = given.lower().replace("-", "").replace("_", "") if isinstance(given, str) else given
    return "http" if plain in ("http", "streamablehttp") else given


class _Entry(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="allow", hide_input_in_errors=True, populate_by_name=True
    )

    disabled: bool = False
    enabled: bool = True
    trust: Annotated[Literal["hints", "none"] | None, BeforeValidator(_trust)] = None
    """Whether its hints count; None: see `server_trust`."""

    timeout: Annotated[float | None, BeforeValidator(_seconds), Field(gt=0)] = None
    """Seconds that a call may take once it is sent; None: as long as its caller waits."""

    tools: Annotated[ToolLists, BeforeValidator(as_tool_lists)] = ToolLists()
    include_tools: tuple[str, ...] | None = Field(
        default=None,
        validation_alias=AliasChoices(
            "includeTools", "allowedTools", "enabledTools", "allowed_tools", "enabled_tools"
        ),
    )
    exclude_tools: tuple[str, ...] = Field(
        default=(),
        validation_alias=AliasChoices(
            "excludeTools", "disabledTools", "excluded_tools", "disabled_tools"
        ),
    )

    @property
    def tool_lists(self) -> ToolLists:
        """The patterns of names of the tools that are offered, from all fields that have some."""
        given = [each for each in (self.tools.allow, self.include_tools) if each is not None]
        allow = tuple(pattern for each in given for pattern in each) if given else None
        return ToolLists(allow=allow, deny=(*self.tools.deny, *self.exclude_tools))

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
    """A server reached by Streamable HTTP, or by the HTTP with SSE of before 2025-03-26; `headers`
    are sent with every request."""

    type: Annotated[Literal["http", "sse"], BeforeValidator(_transport)] = "http"
    url: Annotated[str, AfterValidator(_http_url)]
    headers: dict[str, str] = Field(default_factory=dict, repr=False)


ServerConfig = StdioServer | HttpServer


def child_environment(server: StdioServer, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a stdio server's process, beside the few that every process gets
    (PATH, HOME…)."""
    return {name: environment[name] for name in PASSED_ON if name in environment} | server.env
