"""`pml workflows`: the stored workflows."""

import typer

from pml_cli.options import AsJson, Url
from pml_cli.session import session

workflows = typer.Typer(no_args_is_help=True, help="Delete the data of workflows.")


@workflows.callback()
def main() -> None:
    """Delete the data of workflows."""


@workflows.command("delete")
def workflows_delete(workflow: str, url: Url = None, as_json: AsJson = False) -> None:
    """Delete the data of a workflow of yours that has ended: program, arguments, result, calls and
    traces. What was learned from it stays."""
    from pml_cli.commands import execution

    with session(url, as_json=as_json) as (client, out):
        execution.delete(client, out, workflow)
