"""Host and Origin checks: no web page of another site may call the gateway."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

_AUTHORITY: Final = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?))"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
)
"""Exactly `host[:port]`: no user, no path, no trailing dot, no empty port."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_HIGHEST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class Authority:
    """A host in lower case, IPv6 in its shortest form without brackets, and its port if given."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def authority(text: str) -> Authority | None:
    """Parse `host[:port]`; return None for anything else."""
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        return None
    port = int(found["port"]) if found["port"] else None
    if port is not None and port > _HIGHEST_PORT:
        return None
    if found["six"] is None:
        return Authority(found["name"].lower(), port)
    try:
        return Authority(str(IPv6Address(found["six"])), port)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether a server that listens on `host` can only be reached from this machine."""
    if host in LOOPBACK:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class AllowedHosts:
    """Names by which requests may address the gateway.

    `own` hosts are accepted only with the port it listens on. `configured` ones are accepted with
    their port or, if they have none, with the gateway's port and the default ports. `any_host`
    accepts every name. Pages of `origins` may call it from elsewhere.
    """

    own: Collection[str] = LOOPBACK
    configured: Collection[Authority] = ()
    any_host: bool = False
    origins: Collection[str] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """All names in the form of a Host header; `*` for any."""
        own = (str(Authority(host)) for host in self.own)
        return ("*",) if self.any_host else (*own, *(str(name) for name in self.configured))

    def rejection(
        self, hosts: Sequence[str], origins: Sequence[str], own_port: int | None
    ) -> str | None:
        """Return why a request with these Host and Origin headers is rejected, or None.

        A page of another site uses its own name in Host (DNS rebinding) or in Origin; so does a
        page served from another port of this machine.
        """
        if self.any_host:
            return None
        if len(hosts) != 1 or len(origins) > 1:
            return "there must be exactly one Host header and at most one Origin"
        if not self._is_allowed(authority(hosts[0]), tuple(_DEFAULT_PORTS.values()), own_port):
            return f"the Host header {hosts[0]!r} is not allowed"
        if origins and not self._is_allowed_origin(origins[0], own_port):
            return f"the Origin {origins[0]!r} is not allowed"
        return None

    def _is_allowed_origin(self, origin: str, own_port: int | None) -> bool:
        if origin in self.origins:
            return True
        scheme, _, rest = origin.partition("://")
        default = _DEFAULT_PORTS.get(scheme)
        return default is not None and self._is_allowed(authority(rest), (default,), own_port)

    def _is_allowed(
        self, authority: Authority | None, defaults: Collection[int], own_port: int | None
    ) -> bool:
        if authority is None:
            return False
        ports = defaults if authority.port is None else (authority.port,)
        if authority.host in self.own and own_port in ports:
            return True
        usual = (own_port, *_DEFAULT_PORTS.values())
        return any(
            name.host == authority.host
            and any(port in (usual if name.port is None else (name.port,)) for port in ports)
            for name in self.configured
        )


def allowed_hosts(
    own: Collection[str], configured: Collection[str], origins: Collection[str] = ()
) -> AllowedHosts:
    """Combine `own` hosts with those configured as `host`, `host:port` or `*`.
    Raises ValueError."""
    parsed = [_configured(text) for text in configured if text != "*"]
    return AllowedHosts(frozenset(own), tuple(parsed), "*" in configured, frozenset(origins))


def origin(text: str) -> str:
    """Parse an origin, `scheme://host[:port]`, as a browser sends it. Raises ValueError."""
    scheme, _, rest = text.lower().partition("://")
    found = authority(rest)
    if scheme not in _DEFAULT_PORTS or found is None:
        raise ValueError(f"{text!r} is not an origin: write https://app.example, without a path")
    port = None if found.port == _DEFAULT_PORTS[scheme] else found.port
    return f"{scheme}://{Authority(found.host, port)}"


def _configured(text: str) -> Authority:
    found = authority(text) or authority(f"[{text}]")
    if found is None:
        raise ValueError(f"{text!r} is not a host: write pml.example, pml.example:8443, [::1] or *")
    return found
