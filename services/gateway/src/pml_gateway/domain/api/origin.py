"""Who may talk to a gateway on loopback: no web page that a browser was lured to (F9)."""

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
"""`host[:port]` and nothing else: no user, no path, no dot at the end, no empty port."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_HIGHEST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class Authority:
    """A host in lower case, IPv6 in its shortest form and without brackets; None: no port given."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def authority(text: str) -> Authority | None:
    """Parse `host[:port]`; None where it is anything else."""
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
    """Whether only this machine can reach what listens on `host`."""
    if host in LOOPBACK:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Names:
    """By which names requests may call us.

    `own` hosts count with the port we listen on alone. `named` ones were configured: with a port
    for that port, without one for ours and the default ports. `anybody` lets every name in.
    """

    own: Collection[str] = LOOPBACK
    named: Collection[Authority] = ()
    anybody: bool = False

    @property
    def hosts(self) -> tuple[str, ...]:
        """All of them as they stand in a Host header, `*` for any."""
        own = (str(Authority(host)) for host in self.own)
        return ("*",) if self.anybody else (*own, *(str(name) for name in self.named))

    def foreign(
        self, hosts: Sequence[str], origins: Sequence[str], own_port: int | None
    ) -> str | None:
        """Why a request with these Host and Origin headers must not be answered, or None.

        A page of another site reaches us under its own name (DNS rebinding: Host) or names itself
        (Origin); so does a page of another port of this machine.
        """
        if self.anybody:
            return None
        if len(hosts) != 1 or len(origins) > 1:
            return "there must be one Host header, and one Origin at most"
        if not self._is_ours(authority(hosts[0]), tuple(_DEFAULT_PORTS.values()), own_port):
            return f"the Host header {hosts[0]!r} is none of ours"
        if origins and not self._is_our_origin(origins[0], own_port):
            return f"the Origin {origins[0]!r} is none of ours"
        return None

    def _is_our_origin(self, origin: str, own_port: int | None) -> bool:
        scheme, _, rest = origin.partition("://")
        default = _DEFAULT_PORTS.get(scheme)
        return default is not None and self._is_ours(authority(rest), (default,), own_port)

    def _is_ours(
        self, called: Authority | None, defaults: Collection[int], own_port: int | None
    ) -> bool:
        if called is None:
            return False
        ports = defaults if called.port is None else (called.port,)
        if called.host in self.own and own_port in ports:
            return True
        usual = (own_port, *_DEFAULT_PORTS.values())
        return any(
            name.host == called.host
            and any(port in (usual if name.port is None else (name.port,)) for port in ports)
            for name in self.named
        )


def names_of(own: Collection[str], configured: Collection[str]) -> Names:
    """`own` hosts, and those configured as `host`, `host:port` or `*`. Raises ValueError."""
    named = [_configured(text) for text in configured if text != "*"]
    return Names(frozenset(own), tuple(named), "*" in configured)


def _configured(text: str) -> Authority:
    found = authority(text) or authority(f"[{text}]")
    if found is None:
        raise ValueError(f"{text!r} is no host: write pml.example, pml.example:8443, [::1] or *")
    return found
