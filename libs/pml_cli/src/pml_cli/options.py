"""Options that several subcommands have."""

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Url = Annotated[
    str | None,
    typer.Option("--url", help="The gateway; else PML_URL, else the local stack."),
]
Home = Annotated[
    Path | None, typer.Option(help="The stack's data folder; else PML_HOME, else ./.pml.")
]
Approval = Annotated[
    str | None,
    typer.Option(help="The approval that is meant; asked for where a run waits in its midst."),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", help="The approver's key; else PML_APPROVER_KEY_FILE, else the local stack's."
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Long values whole, not cut.")]
Shown = Annotated[
    str | None,
    typer.Option(
        "--shown", help="The digest that `show` told: refused if something else stands by now."
    ),
]
Reason = Annotated[str | None, typer.Option(help="Why, in your words; its agent is told.")]
