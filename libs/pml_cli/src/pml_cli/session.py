"""Gateway client and output of a subcommand."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pml_cli.client import Client
    from pml_cli.output import Output


def session(
    url: str | None, home: Path | None = None, *, as_json: bool
) -> tuple["Client", "Output"]:
    """Select the gateway and set up output."""
    from pml_cli.client import Client, resolve_url
    from pml_cli.output import Output

    return Client(resolve_url(url, home)), Output(as_json=as_json)
