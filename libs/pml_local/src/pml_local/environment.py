"""Selection of the user's environment variables for each service. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

COMMON = (
    "PATH",
    "HOME",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "OTEL_*",
    "PML_LOG_LEVEL",
    "PML_LOG_FORMAT",
    "PML_METRICS",
    "PML_START_PATIENCE_S",
    "PML_SHUTDOWN_TIMEOUT_S",
    "PML_STREAM_STORAGE",
)
"""Variables for every service: start-up, telemetry and shutdown. A trailing `*` matches any
suffix."""

FOR_MCP_SERVERS = (
    *("USER", "LOGNAME", "SHELL", "TERM"),
    *("XDG_CACHE_HOME", "DENO_DIR", "UV_CACHE_DIR", "npm_config_cache"),
    *("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "DENO_CERT", "DENO_TLS_CA_STORE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("NPM_CONFIG_REGISTRY", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_SYSTEM_CERTS"),
)
"""Variables that the gateway passes to MCP servers on this machine."""

SYSTEM_CERTIFICATES: Final = {"UV_SYSTEM_CERTS": "true", "DENO_TLS_CA_STORE": "system,mozilla"}
"""Variables by which uv and Deno accept what this machine accepts, such as a company's authority.
The user's own win."""

_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^{}]*)?\}")
_ANSWERS = "PML_INPUT_*"
"""Variables that answer `${input:id}`."""


def own_variables(service: str) -> tuple[str, ...]:
    """Patterns of one service's settings."""
    return (f"PML_{service.upper()}_*",)


def referenced_variables(text: str) -> tuple[str, ...]:
    """Patterns of the variables that an `mcpServers` file refers to: `${NAME}`, `${NAME:-…}`,
    `${env:NAME}`, `${input:id}`."""
    return (*dict.fromkeys(_REFERENCE.findall(text)), _ANSWERS)


def select_variables(environment: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """Select variables by name; a trailing `*` matches any suffix."""
    exact = {name for name in names if not name.endswith("*")}
    heads = tuple(name[:-1] for name in names if name.endswith("*"))
    return {
        name: value
        for name, value in environment.items()
        if name in exact or (heads and name.startswith(heads))
    }
