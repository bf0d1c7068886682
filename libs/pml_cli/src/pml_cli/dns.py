"""`pml dns`: names, records and versions of capabilities."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pml_cli.options import AsJson, KeyFile, Url
from pml_cli.session import session

if TYPE_CHECKING:
    from pml_cli.client import Client
    from pml_cli.output import Output

dns = typer.Typer(no_args_is_help=True)

_admins: ContextVar[Path | Literal["nobody"] | None] = ContextVar("admins", default="nobody")
"""The key file of the admin as whom a command runs; None: that of the local stack."""


@dns.callback()
def as_whom(
    admin: Annotated[
        bool,
        typer.Option("--admin", help="As the admin, by the approver's key: any record may change."),
    ] = False,
    key_file: KeyFile = None,
) -> None:
    """Look up, search and change the records of capabilities. A NAME may select a version:
    fs:read@2, fs:read@v1, fs:read@2025-12-22."""
    _admins.set(key_file if admin else "nobody")


@contextmanager
def _session(url: str | None, *, as_json: bool) -> Generator[tuple["Client", "Output"]]:
    """Connect, as the admin where that was asked for."""
    from pml_cli.credentials import deciding_headers

    key_file = _admins.get()
    with session(url, as_json=as_json) as (client, out):
        if key_file != "nobody":
            client.authorise(deciding_headers(client.url, key_file))
        yield client, out


Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="fs:read, fs:read@v1, cap:acme.webapp:fs:read, a fully qualified name or an id.",
    ),
]
NewName = Annotated[str, typer.Argument(metavar="NEW_NAME", help="namespace:action")]
Cursor = Annotated[str | None, typer.Option(help="Where to go on, as the page before printed it.")]


@dns.command()
def lookup(
    name: Name,
    short: Annotated[
        bool, typer.Option("--short", help="Print only the fully qualified name and version.")
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Resolve a name to its record and version. Exit code 1: there is none."""
    from pml_cli.commands import dns as command

    with _session(url, as_json=as_json) as (client, out):
        command.lookup(client, out, name, short=short)


@dns.command()
def whois(name: Name, url: Url = None, as_json: AsJson = False) -> None:
    """Show all that is known of a record, with its versions."""
    from pml_cli.commands import dns as command

    with _session(url, as_json=as_json) as (client, out):
        command.whois(client, out, name)


@dns.command()
def query(
    text: Annotated[str | None, typer.Argument(help="Text in name or description.")] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Creator; * stands for any text, as 'erwan@*'.")
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="Namespace, as fs or 'f*'.")] = None,
    version_tag: Annotated[str | None, typer.Option(help="Tag of a version, as 'v1.*'.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Tag of the record; given again, it needs all.")
    ] = None,
    visibility: Annotated[
        Literal["private", "project", "org", "public"] | None, typer.Option(help="Who sees it.")
    ] = None,
    reach: Annotated[
        Literal["project", "org", "public"],
        typer.Option(help="Where to look: this project; its organisation; everywhere."),
    ] = "project",
    sort: Annotated[Literal["usage", "date", "name"], typer.Option(help="Order.")] = "usage",
    unlisted: Annotated[
        bool, typer.Option("--unlisted", help="Also those that have not succeeded yet.")
    ] = False,
    unnamed: Annotated[bool, typer.Option("--unnamed", help="Also those without a name.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    cursor: Cursor = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Find records that match every filter."""
    from pml_cli.commands import dns as command

    filters: dict[str, object] = {
        "text": text,
        "created_by": by,
        "namespace": namespace,
        "version_tag": version_tag,
        "tags": tag,
        "visibility": visibility,
        "reach": reach,
        "sort": sort,
        "include_unlisted": unlisted or None,
        "include_unnamed": unnamed or None,
        "limit": limit,
        "cursor": cursor,
    }
    with _session(url, as_json=as_json) as (client, out):
        command.query(client, out, filters)


@dns.command()
def history(
    name: Name,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    cursor: Cursor = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show the changes of a record, newest first, with diffs of its code."""
    from pml_cli.commands import dns as command

    with _session(url, as_json=as_json) as (client, out):
        command.history(client, out, name, limit, cursor)


@dns.command()
def fork(source: Name, new_name: NewName, url: Url = None, as_json: AsJson = False) -> None:
    """Copy a version into a new record of this project."""
    _change("fork", {"source": source, "name": new_name}, url, as_json=as_json)


@dns.command()
def merge(
    new_name: NewName,
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="Capabilities, called in this order."),
    ],
    code: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Program that calls all of them; - is stdin.",
        ),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Make one capability of several: each gets the result of the one before, if they fit."""
    from pml_cli.arguments import read_source

    body: dict[str, object] = {"name": new_name, "sources": sources}
    if code is not None:
        body["code"] = read_source(code)
    _change("merge", body, url, as_json=as_json)


@dns.command()
def rename(name: Name, new_name: NewName, url: Url = None, as_json: AsJson = False) -> None:
    """Give a record another name; the old one leads to it for ever."""
    _change("rename", {"name": name, "new_name": new_name}, url, as_json=as_json)


@dns.command()
def tag(
    name: Name,
    version_tag: Annotated[
        str | None, typer.Argument(help="Tag for the version that NAME selects, as v1.2.0.")
    ] = None,
    add: Annotated[
        list[str] | None, typer.Option(help="Tag to add to the record, as json.")
    ] = None,
    remove: Annotated[list[str] | None, typer.Option(help="Tag to remove from it.")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Tag a version (pml dns tag fs:read@2 v1.2.0), or add and remove tags of the record (--add
    json)."""
    fields = {"name": name, "version_tag": version_tag, "add": add, "remove": remove}
    given = {key: value for key, value in fields.items() if value}
    _change("tag", given, url, as_json=as_json)


@dns.command()
def yank(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why; whoever uses the version is told.")],
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Advise against a version: it is found only where it is named exactly."""
    _change("yank", {"name": name, "reason": reason}, url, as_json=as_json)


@dns.command()
def unyank(name: Name, url: Url = None, as_json: AsJson = False) -> None:
    """Take back the yank of a version."""
    _change("unyank", {"name": name}, url, as_json=as_json)


@dns.command()
def visibility(
    name: Name,
    who: Annotated[
        Literal["private", "project", "org", "public"],
        typer.Argument(metavar="WHO", help="private (its owner), project, org or public."),
    ],
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Set who sees a record."""
    _change("visibility", {"name": name, "visibility": who}, url, as_json=as_json)


@dns.command()
def transfer(
    name: Name,
    owner: Annotated[str, typer.Argument(metavar="OWNER", help="Principal that will own it.")],
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Give a record to another owner."""
    _change("transfer", {"name": name, "owner": owner}, url, as_json=as_json)


def _change(kind: str, body: Mapping[str, object], url: str | None, *, as_json: bool) -> None:
    from pml_cli.commands import dns as command

    with _session(url, as_json=as_json) as (client, out):
        command.change(client, out, kind, body)
