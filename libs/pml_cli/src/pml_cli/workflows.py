"""`pml workflows`: the stored workflows."""

from pml_cli.command_line import Group
from pml_cli.options import AS_JSON, URL, word
from pml_cli.session import session

GROUP = Group()


@GROUP.command(word("workflow"), URL, AS_JSON)
def delete(workflow: str, url: str | None, as_json: bool) -> None:
    """Delete the data of a workflow of yours that has ended: program, arguments, result, calls and
    traces. What was learned from it stays."""
    from pml_cli.commands import execution

    execution.delete(*session(url, as_json=as_json), workflow)
