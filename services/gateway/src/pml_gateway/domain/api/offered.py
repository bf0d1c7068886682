"""Resources and prompts of MCP servers: how our clients see them, and whose they are.

A prompt is named like a tool. A resource keeps its URI where one server alone has it; otherwise,
and always on request, `pml://SERVER/URI` names it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote

from pydantic import JsonValue

from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition
from pml_gateway.domain.api.errors import Conflict, NotFound
from pml_gateway.domain.api.mcp_names import listed_names
from pml_gateway.domain.api.mcp_tools import did_you_mean
from pml_gateway.domain.servers.offers import Offers

Fits = Callable[[str, str], bool]
"""Whether a URI is made by a template."""

SERVER: Final = "pml/server"
"""Key in `_meta` of what is listed: the server that offers it."""

_OWN: Final = "pml://"
_URI: Final = "uri"
_TEMPLATE: Final = "uriTemplate"


class Offered:
    """Offers of servers, by server."""

    def __init__(self, offers: Mapping[str, Offers], fits: Fits) -> None:
        self._offers = offers
        self._fits = fits
        self._uris = Counter(_values(offers, "resources", _URI))
        self._templates = Counter(_values(offers, "templates", _TEMPLATE))
        ids = {f"{server}:{name}": (server, name) for server, name in _prompts(offers)}
        bare = {server for server, offered in offers.items() if not offered.prefixed}
        names = listed_names(ids, (), bare)
        self._named = {name: ids[prompt] for prompt, name in names.items()}
        self._ids = ids

    def resources(self) -> list[JsonObject]:
        """Return the listings of resources, by URI."""
        listed = [
            _shown(server, each, _URI, self._uris)
            for server, offered in self._offers.items()
            for each in offered.resources
        ]
        return sorted(listed, key=lambda each: str(each[_URI]))

    def templates(self) -> list[JsonObject]:
        """Return the listings of templates, by template."""
        listed = [
            _shown(server, each, _TEMPLATE, self._templates)
            for server, offered in self._offers.items()
            for each in offered.templates
        ]
        return sorted(listed, key=lambda each: str(each[_TEMPLATE]))

    def prompts(self) -> list[JsonObject]:
        """Return the listings of prompts, by name; the true id is the title where there is none."""
        found = {
            (server, str(each["name"])): each
            for server, offered in self._offers.items()
            for each in offered.prompts
        }
        return [
            {
                "title": f"{server}:{prompt}",
                **_with_server(server, found[server, prompt]),
                "name": name,
            }
            for name, (server, prompt) in sorted(self._named.items())
        ]

    def prompt(self, name: str) -> tuple[str, str]:
        """Return the server of a prompt, and its name there, by its listed name or its id. Raises
        NotFound."""
        found = self._named.get(name) or self._ids.get(name)
        if found is None:
            raise NotFound(f"no prompt {name!r}{did_you_mean(name, [*self._named])}")
        return found

    def resource(self, uri: str) -> tuple[str, str]:
        """Return the server of a resource, and its URI there. Raises NotFound, and Conflict where
        several servers have it."""
        own = self._of_own(uri)
        if own is not None:
            return own
        holders = self._holders(uri)
        if not holders:
            raise NotFound(f"no resource {uri!r}")
        if len(holders) > 1:
            ways = " or ".join(own_uri(server, uri) for server in holders)
            raise Conflict(f"{len(holders)} servers have the resource {uri!r}: read {ways}")
        return holders[0], uri

    def template(self, template: str) -> tuple[str, str]:
        """Return the server of a template, and the template there. Raises NotFound."""
        for server, offered in self._offers.items():
            for each in offered.templates:
                listed = str(each[_TEMPLATE])
                if template == own_uri(server, listed):
                    return server, listed
                if template == listed and self._templates[listed] == 1:
                    return server, listed
        raise NotFound(f"no resource template {template!r}")

    def link(self, server: str, uri: str) -> str:
        """Return the URI by which our clients read what a server's result links to."""
        return uri if self._holders(uri) == [server] else own_uri(server, uri)

    def _of_own(self, uri: str) -> tuple[str, str] | None:
        server, slash, rest = uri.removeprefix(_OWN).partition("/")
        if not uri.startswith(_OWN) or not slash or unquote(server) not in self._offers:
            return None
        return unquote(server), rest

    def _holders(self, uri: str) -> list[str]:
        """Return the servers that list a resource; where none does, those with a template of it."""
        listing = [
            server
            for server, offered in self._offers.items()
            if any(each[_URI] == uri for each in offered.resources)
        ]
        return listing or [
            server
            for server, offered in self._offers.items()
            if any(self._fits(str(each[_TEMPLATE]), uri) for each in offered.templates)
        ]


def own_uri(server: str, uri: str) -> str:
    """Return the URI that names a server's resource, whatever other servers have."""
    return f"{_OWN}{quote(server, safe='')}/{uri}"


def with_links(result: JsonObject, link: Callable[[str], str]) -> JsonObject:
    """Return a tool's result in which the URI of each link to a resource is what `link` makes of
    it."""
    content = result.get("content")
    if not isinstance(content, list) or not any(map(_is_link, content)):
        return result
    return {**result, "content": [_linked(block, link) for block in content]}


def permitted(offers: Mapping[str, Offers], policy: Policy) -> Mapping[str, Offers]:
    """Return what a policy allows at once: nobody is asked about a resource or a prompt. Its rules
    see `server:resources/URI` (or a template) and `server:prompts/NAME`, which only read."""
    if not policy.rules and policy.read_only == "allow":
        return offers

    def kept(
        server: str, kind: str, key: str, items: Iterable[JsonObject]
    ) -> tuple[JsonObject, ...]:
        return tuple(each for each in items if may_read(policy, server, f"{kind}/{each[key]}"))

    return {
        server: Offers(
            kept(server, "resources", _URI, offered.resources),
            kept(server, "resources", _TEMPLATE, offered.templates),
            kept(server, "prompts", "name", offered.prompts),
            offered.prefixed,
        )
        for server, offered in offers.items()
    }


def may_read(policy: Policy, server: str, name: str) -> bool:
    """Whether a policy allows `resources/URI` or `prompts/NAME` of a server at once."""
    read = ToolDefinition(server=server, name=name, annotations=ToolAnnotations(read_only=True))
    return policy.verdict_on(read)[0] == "allow"


def _shown(server: str, item: JsonObject, key: str, times: Mapping[str, int]) -> JsonObject:
    value = str(item[key])
    return {
        **_with_server(server, item),
        key: value if times[value] == 1 else own_uri(server, value),
    }


def _with_server(server: str, item: JsonObject) -> JsonObject:
    meta = item.get("_meta")
    return {**item, "_meta": {**(meta if isinstance(meta, dict) else {}), SERVER: server}}


def _values(offers: Mapping[str, Offers], kind: str, key: str) -> Sequence[str]:
    return [str(each[key]) for offered in offers.values() for each in getattr(offered, kind)]


def _prompts(offers: Mapping[str, Offers]) -> Sequence[tuple[str, str]]:
    return [
        (server, str(each["name"]))
        for server, offered in offers.items()
        for each in offered.prompts
    ]


def _is_link(block: JsonValue) -> bool:
    return isinstance(block, dict) and block.get("type") == "resource_link"


def _linked(block: JsonValue, link: Callable[[str], str]) -> JsonValue:
    match block:
        case {"type": "resource_link", "uri": str() as uri}:
            return {**block, "uri": link(uri)}
        case _:
            return block
