"""URI templates (RFC 6570) of resources."""

from functools import lru_cache

from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate


def fits(template: str, uri: str) -> bool:
    """Return whether a URI is made by a template; False for one that is malformed."""
    parsed = _parsed(template)
    return parsed is not None and parsed.match(uri) is not None


@lru_cache(maxsize=4096)
def _parsed(template: str) -> UriTemplate | None:
    try:
        return UriTemplate.parse(template)
    except InvalidUriTemplate:
        return None
