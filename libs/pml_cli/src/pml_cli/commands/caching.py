"""The command for cache policies."""

from collections.abc import Mapping
from typing import cast
from urllib.parse import quote

from pml_cli.client import Client, Json
from pml_cli.errors import USAGE, CommandError
from pml_cli.markup import escape
from pml_cli.output import Output
from pml_cli.render.caching import cached_how


def cache(client: Client, out: Output, capability: str, chosen: Mapping[str, object]) -> None:
    """Set the given fields of the cache policy, if any, and show the policy. Raises
    CommandError."""
    given = {key: value for key, value in chosen.items() if value is not None}
    if given and "policy" not in given:
        raise CommandError("--ttl and --force are for a policy: memoize or persistent", USAGE)
    path = f"/api/capabilities/{quote(capability, safe=':')}"
    found = client.patch(path, {"cache": given}) if given else client.get(path)
    shown = cached_how(cast(Json, found["cache"]))
    out.show(
        {"name": found["name"], "cache": found["cache"]}, f"{escape(str(found['name']))}: {shown}"
    )
