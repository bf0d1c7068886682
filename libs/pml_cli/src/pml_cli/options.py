"""Options shared by several subcommands."""

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Url = Annotated[
    str | None,
    typer.Option("--url", help="Gateway URL; default PML_URL, else the local stack."),
]
Home = Annotated[
    Path | None, typer.Option(help="The stack's data folder; default PML_HOME, else ./.pml.")
]
Approval = Annotated[
    str | None,
    typer.Option(help="Id of the approval; required for a parked run."),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", help="Approver's key file; default PML_APPROVER_KEY_FILE, else the stack's."
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Show long values in full.")]
Shown = Annotated[
    str | None,
    typer.Option(
        "--shown", help="Digest printed by `show`; the decision is refused if it is outdated."
    ),
]
Reason = Annotated[str | None, typer.Option(help="The reason; passed on to the agent.")]
