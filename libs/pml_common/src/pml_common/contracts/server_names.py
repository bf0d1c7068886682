"""Names of MCP servers: any text in an `mcpServers` file, a safe form of it in tool ids."""

import hashlib
import re
import unicodedata
from typing import Final

SERVER_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")

_LONGEST: Final = 63
_DIGEST: Final = 8


def safe_name(title: str) -> str:
    """Return the form of a name that addresses a server: `[a-z0-9][a-z0-9_-]{0,62}`."""
    if SERVER_NAME.fullmatch(title):
        return title
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    safe = re.sub("[^a-z0-9_]+", "-", plain).strip("-_")
    digest = hashlib.sha256(title.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    if not safe:
        return f"server-{digest}"
    return safe if len(safe) <= _LONGEST else f"{safe[: _LONGEST - _DIGEST - 1]}-{digest}"
