"""`pml dns`: names, records and versions of capabilities."""

from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pml_cli.command_line import Group
from pml_cli.options import AS_JSON, KEY_FILE, URL, flag, number, one_of, option, word
from pml_cli.session import session

if TYPE_CHECKING:
    from pml_cli.client import Client
    from pml_cli.output import Output

_admins: ContextVar[Path | Literal["nobody"] | None] = ContextVar("admins", default="nobody")
"""The key file of the admin as whom a command runs; None: that of the local stack."""


def _as_whom(*, admin: bool, key_file: Path | None) -> None:
    _admins.set(key_file if admin else "nobody")


_ADMIN = flag("--admin", "As the admin, by the approver's key: any record may change.")
GROUP = Group(options=(_ADMIN, KEY_FILE), prepare=_as_whom)


def _session(url: str | None, *, as_json: bool) -> tuple["Client", "Output"]:
    """Connect, as the admin where that was asked for."""
    key_file = _admins.get()
    client, out = session(url, as_json=as_json)
    if key_file != "nobody":
        from pml_cli.credentials import deciding_headers

        client.authorise(deciding_headers(client.url, key_file))
    return client, out


_SEES = one_of("private", "project", "org", "public")
NAME = word(
    "name",
    "fs:read, fs:read@v1, cap:acme.webapp:fs:read, a fully qualified name or an id.",
    metavar="NAME",
)
SOURCE = NAME._replace(flags=("source",))
NEW_NAME = word("new_name", "namespace:action", metavar="NEW_NAME")
CURSOR = option("--cursor", "Where to go on, as the page before printed it.")


@GROUP.command(
    NAME,
    flag("--short", "Print only the fully qualified name and version."),
    URL,
    AS_JSON,
)
def lookup(name: str, short: bool, url: str | None, as_json: bool) -> None:
    """Resolve a name to its record and version. Exit code 1: there is none."""
    from pml_cli.commands import dns as command

    command.lookup(*_session(url, as_json=as_json), name, short=short)


@GROUP.command(NAME, URL, AS_JSON)
def whois(name: str, url: str | None, as_json: bool) -> None:
    """Show all that is known of a record, with its versions."""
    from pml_cli.commands import dns as command

    command.whois(*_session(url, as_json=as_json), name)


@GROUP.command(
    word("text", "Text in name or description.", nargs="?"),
    option("--by", "Creator; * stands for any text, as 'erwan@*'.", name="created_by"),
    option("--namespace", "Namespace, as fs or 'f*'."),
    option("--version-tag", "Tag of a version, as 'v1.*'."),
    option("--tag", "Tag of the record; given again, it needs all.", name="tags", action="append"),
    option("--visibility", "Who sees it.", **_SEES),
    option(
        "--reach",
        "Where to look: this project; its organisation; everywhere.",
        default="project",
        **one_of("project", "org", "public"),
    ),
    option("--sort", "Order.", default="usage", **one_of("usage", "date", "name")),
    flag("--unlisted", "Also those that have not succeeded yet."),
    flag("--unnamed", "Also those without a name."),
    option("--limit", default=50, **number(int, 1, 200)),
    CURSOR,
    URL,
    AS_JSON,
)
def query(unlisted: bool, unnamed: bool, url: str | None, as_json: bool, **filters: object) -> None:
    """Find records that match every filter."""
    from pml_cli.commands import dns as command

    filters |= {"include_unlisted": unlisted or None, "include_unnamed": unnamed or None}
    command.query(*_session(url, as_json=as_json), filters)


@GROUP.command(NAME, option("--limit", default=20, **number(int, 1, 100)), CURSOR, URL, AS_JSON)
def history(name: str, limit: int, cursor: str | None, url: str | None, as_json: bool) -> None:
    """Show the changes of a record, newest first, with diffs of its code."""
    from pml_cli.commands import dns as command

    command.history(*_session(url, as_json=as_json), name, limit, cursor)


@GROUP.command(SOURCE, NEW_NAME, URL, AS_JSON)
def fork(source: str, new_name: str, url: str | None, as_json: bool) -> None:
    """Copy a version into a new record of this project."""
    _change("fork", {"source": source, "name": new_name}, url, as_json=as_json)


@GROUP.command(
    NEW_NAME,
    word("sources", "Capabilities, called in this order.", metavar="SOURCE", nargs="+"),
    option("--code", "Program that calls all of them; - is stdin.", metavar="FILE"),
    URL,
    AS_JSON,
)
def merge(
    new_name: str, sources: list[str], code: str | None, url: str | None, as_json: bool
) -> None:
    """Make one capability of several: each gets the result of the one before, if they fit."""
    from pml_cli.arguments import read_source

    body: dict[str, object] = {"name": new_name, "sources": sources}
    if code is not None:
        body["code"] = read_source(code)
    _change("merge", body, url, as_json=as_json)


@GROUP.command(NAME, NEW_NAME, URL, AS_JSON)
def rename(name: str, new_name: str, url: str | None, as_json: bool) -> None:
    """Give a record another name; the old one leads to it for ever."""
    _change("rename", {"name": name, "new_name": new_name}, url, as_json=as_json)


@GROUP.command(
    NAME,
    word("description", "What it is for; it is found by these words.", metavar="TEXT"),
    URL,
    AS_JSON,
)
def describe(name: str, description: str, url: str | None, as_json: bool) -> None:
    """Say what the version that NAME selects is for."""
    _change("describe", {"name": name, "description": description}, url, as_json=as_json)


@GROUP.command(
    NAME,
    word("version_tag", "Tag for the version that NAME selects, as v1.2.0.", nargs="?"),
    option("--add", "Tag to add to the record, as json.", action="append"),
    option("--remove", "Tag to remove from it.", action="append"),
    URL,
    AS_JSON,
)
def tag(url: str | None, as_json: bool, **fields: object) -> None:
    """Tag a version (pml dns tag fs:read@2 v1.2.0), or add and remove tags of the record (--add
    json)."""
    given = {key: value for key, value in fields.items() if value}
    _change("tag", given, url, as_json=as_json)


@GROUP.command(
    NAME,
    option("--reason", "Why; whoever uses the version is told. [required]", required=True),
    URL,
    AS_JSON,
)
def yank(name: str, reason: str, url: str | None, as_json: bool) -> None:
    """Advise against a version: it is found only where it is named exactly."""
    _change("yank", {"name": name, "reason": reason}, url, as_json=as_json)


@GROUP.command(NAME, URL, AS_JSON)
def unyank(name: str, url: str | None, as_json: bool) -> None:
    """Take back the yank of a version."""
    _change("unyank", {"name": name}, url, as_json=as_json)


@GROUP.command(
    NAME,
    word("who", "private (its owner), project, org or public.", metavar="WHO", **_SEES),
    URL,
    AS_JSON,
)
def visibility(name: str, who: str, url: str | None, as_json: bool) -> None:
    """Set who sees a record."""
    _change("visibility", {"name": name, "visibility": who}, url, as_json=as_json)


@GROUP.command(NAME, word("owner", "Principal that will own it.", metavar="OWNER"), URL, AS_JSON)
def transfer(name: str, owner: str, url: str | None, as_json: bool) -> None:
    """Give a record to another owner."""
    _change("transfer", {"name": name, "owner": owner}, url, as_json=as_json)


def _change(kind: str, body: Mapping[str, object], url: str | None, *, as_json: bool) -> None:
    from pml_cli.commands import dns as command

    command.change(*_session(url, as_json=as_json), kind, body)
