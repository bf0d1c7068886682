"""`pml registry`: the vector index of discovery."""

from pathlib import Path

from pml_cli.command_line import Group
from pml_cli.options import AS_JSON, KEY_FILE, URL, number, option
from pml_cli.session import session

GROUP = Group()


@GROUP.command(URL, AS_JSON)
def index(url: str | None, as_json: bool) -> None:
    """Show where vectors are searched, the embedding models, and the last rebuild."""
    from pml_cli.commands import registry as command

    command.index(*session(url, as_json=as_json))


@GROUP.command(
    option(
        "--wait",
        "Seconds to wait for its end; 0: only begin it.",
        name="wait_s",
        default=3600.0,
        **number(float, 0),
    ),
    KEY_FILE,
    URL,
    AS_JSON,
)
def reindex(wait_s: float, key_file: Path | None, url: str | None, as_json: bool) -> int:
    """Rebuild the vector index from Postgres and show its progress; what Postgres does not have is
    removed. A rebuild under way goes on. Exit code 1: it has not ended in time."""
    from pml_cli.commands import registry as command
    from pml_cli.credentials import deciding_headers

    client, out = session(url, as_json=as_json)
    return command.reindex(client, out, wait_s, deciding_headers(client.url, key_file))
