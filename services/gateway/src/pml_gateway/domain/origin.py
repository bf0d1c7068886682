"""Who may talk to a gateway on loopback: no web page that a browser was lured to (F9)."""

from collections.abc import Collection
from urllib.parse import urlsplit

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on `host`."""
    return host in LOOPBACK or host.startswith("127.")


def foreign(host: str | None, origin: str | None, allowed: Collection[str]) -> str | None:
    """Why a request with these headers must not be answered, or None.

    A page of another site reaches us under its own name (DNS rebinding: Host) or names itself
    (Origin). `*` in `allowed` lets every name in.
    """
    if "*" in allowed:
        return None
    if host is None or _host_in(f"//{host}") not in allowed:
        return f"the Host header {host or ''!r} is none of ours"
    if origin is not None and _host_in(origin) not in allowed:
        return f"the Origin {origin!r} is none of ours"
    return None


def _host_in(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
