"""The configuration of one upstream MCP server: its connection and its limits."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)
from pydantic.alias_generators import to_camel

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
    "UV_SYSTEM_CERTS",
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


def _prefix(given: object) -> object:
    """Return whether tools are listed under their server's name; an empty text says no."""
    if isinstance(given, bool):
        return given
    if given == "":
        return False
    raise ValueError('must be true, or false (or "") for names without that of the server')


def _transport(given: object) -> object:
    """Return the name of an HTTP transport: clients write Streamable HTTP in several ways."""
    plain = given.lower().replace("-", "").replace("_", "") if isinstance(given, str) else given
    return "http" if plain in ("http", "streamablehttp") else given


def _https_document(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.path in ("", "/"):
        raise ValueError("must be an https:// URL with a path")
    return url


def _scopes(given: object) -> object:
    return " ".join(map(str, cast(list[object], given))) if isinstance(given, list) else given


class OAuthClient(BaseModel):
    """Our client at the authorization server of an MCP server. Without `client_id` it is registered
    by the login; `token` is sent as it is, in place of a login."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        hide_input_in_errors=True,
        populate_by_name=True,
        alias_generator=to_camel,
    )

    client_id: str | None = None
    client_secret: Annotated[str | None, Field(repr=False)] = None
    client_metadata_url: Annotated[str | None, AfterValidator(_https_document)] = None
    callback_port: Annotated[int | None, Field(ge=1, le=65535)] = None
    scope: Annotated[
        str | None,
        BeforeValidator(_scopes),
        Field(validation_alias=AliasChoices("scope", "scopes")),
    ] = None
    token: Annotated[str | None, Field(repr=False)] = None


def _oauth(given: object) -> object:
    """Read `oauth` of an entry; false: the server is sent nothing but its headers."""
    if given is False:
        return None
    return {} if given is True else given


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

    prefix: Annotated[bool, BeforeValidator(_prefix)] = True
    """Whether its tools and prompts are listed as `<server>_<name>`."""

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
    oauth: Annotated[OAuthClient | None, BeforeValidator(_oauth)] = OAuthClient()

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers, with the token of `oauth`, if any."""
        token = None if self.oauth is None else self.oauth.token
        return self.headers | ({} if token is None else {"Authorization": f"Bearer {token}"})

    @property
    def logs_in(self) -> bool:
        """Whether the tokens of a login are sent: not where the entry has a token of its own."""
        named = {name.lower() for name in self.sent_headers}
        return self.oauth is not None and "authorization" not in named


ServerConfig = StdioServer | HttpServer


def child_environment(server: StdioServer, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a stdio server's process, beside the few that every process gets
    (PATH, HOME…)."""
    return {name: environment[name] for name in PASSED_ON if name in environment} | server.env
