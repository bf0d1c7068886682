"""Commands on the records of capabilities."""

from collections.abc import Mapping

from pml_cli.client import Client
from pml_cli.markup import escape
from pml_cli.output import Output
from pml_cli.render.dns import (
    change_line,
    entry_lines,
    record_lines,
    records_table,
    resolved_table,
    versions_table,
)
from pml_cli.render.use import LATEST
from pml_common.contracts.dns import ChangedRecord, History, RecordPage, ResolvedName, Whois


def lookup(client: Client, out: Output, name: str, *, short: bool) -> None:
    """The record and version that a name means."""
    answer = client.get("/api/dns/lookup", name=name)
    found = ResolvedName.model_validate(answer)
    line = f"{escape(found.fqdn)}@{found.version}"
    out.show(answer, line if short else resolved_table(found))
    out.remarks(found.notices)


def whois(client: Client, out: Output, name: str) -> None:
    """A record with its versions."""
    answer = client.get("/api/dns/whois", name=name)
    found = Whois.model_validate(answer)
    out.show(answer, *record_lines(found), "", versions_table(found))
    out.remarks(found.notices)


def query(client: Client, out: Output, filters: Mapping[str, object]) -> None:
    """A page of the records that match every filter."""
    answer = client.get("/api/dns/records", **filters)
    page = RecordPage.model_validate(answer)
    shown = records_table(page) if page.records else "[dim]no records[/]"
    out.show(answer, shown)
    out.remarks([LATEST] if page.records else [])
    if len(page.records) < page.total:
        out.remarks([f"{len(page.records)} of {page.total} records"])
    _hint(out, page.next_cursor)


def history(client: Client, out: Output, name: str, limit: int, cursor: str | None) -> None:
    """A page of a record's changes."""
    answer = client.get("/api/dns/history", name=name, limit=limit, cursor=cursor)
    found = History.model_validate(answer)
    title = f"[bold]{escape(found.name)}[/]  [dim]{escape(found.fqdn)}[/]"
    lines = [line for entry in found.entries for line in ("", *entry_lines(entry))]
    out.show(answer, title, *(lines or ["[dim]no changes[/]"]))
    out.remarks(found.notices)
    _hint(out, found.next_cursor)


def change(client: Client, out: Output, kind: str, body: Mapping[str, object]) -> None:
    """Change a record, and show what it is now."""
    answer = client.post(f"/api/dns/{kind}", body)
    changed = ChangedRecord.model_validate(answer)
    out.show(answer, change_line(kind, body, changed))
    out.remarks(changed.notices)


def _hint(out: Output, cursor: str | None) -> None:
    if cursor is not None:
        out.remarks([f"next page: the same command with --cursor {cursor}"])
