"""Connections to a gateway: HTTP or HTTPS, by a proxy where the environment names one.

The standard library's client costs a third of what others do.
"""

import os
from base64 import b64encode
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import SplitResult, unquote, urlsplit

_CONNECT_S = 5.0


@contextmanager
def connect(url: str, wait_s: float) -> Generator[tuple[HTTPConnection, str, dict[str, str]]]:
    """Connect to the server of a URL: the connection, what every path begins with, and headers.
    Answers are waited for that long. Raises OSError, HTTPException and ValueError."""
    to = urlsplit(url)
    if to.scheme not in ("http", "https") or not to.hostname:
        raise ValueError("the URL must begin with http:// or https://")
    proxy = _proxy_of(to)
    connection = _connection(proxy or to, secure=to.scheme == "https")
    prefix, headers = to.path.rstrip("/"), _login(to, "Authorization")
    if proxy and to.scheme == "https":
        connection.set_tunnel(to.hostname, to.port, _login(proxy, "Proxy-Authorization"))
    elif proxy:
        prefix = f"http://{to.netloc.rpartition('@')[2]}{prefix}"
        headers |= _login(proxy, "Proxy-Authorization")
    try:
        connection.connect()
        connection.sock.settimeout(wait_s)
        yield connection, prefix, headers
    finally:
        connection.close()


def _connection(to: SplitResult, *, secure: bool) -> HTTPConnection:
    assert to.hostname is not None  # noqa: S101 - of a URL with a host
    if not secure:
        return HTTPConnection(to.hostname, to.port, timeout=_CONNECT_S)
    return HTTPSConnection(to.hostname, to.port, timeout=_CONNECT_S)


def _proxy_of(to: SplitResult) -> SplitResult | None:
    """The proxy for a URL by the usual variables, which are looked up only where one is set."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    named = proxies.get(to.scheme) or proxies.get("all")
    host = to.hostname if to.port is None else f"{to.hostname}:{to.port}"
    if not named or proxy_bypass(str(host)):
        return None
    return urlsplit(named if "://" in named else f"http://{named}")


def _login(to: SplitResult, header: str) -> dict[str, str]:
    if to.username is None:
        return {}
    pair = f"{unquote(to.username)}:{unquote(to.password or '')}"
    return {header: f"Basic {b64encode(pair.encode()).decode()}"}
