"""Rendering of records, their versions and their changes. Times are in UTC."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from rich.table import Column, Table

from pml_cli.markup import escape
from pml_cli.render.caching import cached_how
from pml_cli.render.sources import source_text
from pml_cli.render.use import health_text, others_text, rate_text, use_text
from pml_cli.render.values import short
from pml_common.contracts.dns import (
    ChangedRecord,
    HistoryEntry,
    RecordPage,
    ResolvedName,
    VersionSummary,
    Whois,
)
from pml_common.contracts.references import UNNAMED
from pml_common.contracts.tool import JsonObject

_LONGEST: Final = 60
_CHANGED: Final = {
    "fork": "{source} is copied as {name}",
    "rename": "{name} is called {new_name} now; the old name leads there",
    "describe": "{name} is described: {description}",
    "yank": "{name} is yanked: {reason}",
    "unyank": "{name} is yanked no more",
    "visibility": "{name} is {visibility} now",
    "transfer": "{name} belongs to {owner} now",
}
_DIFF_STYLES: Final = (
    ("@@", "cyan"),
    ("+++", "bold"),
    ("---", "bold"),
    ("+", "green"),
    ("-", "red"),
)


def resolved_table(found: ResolvedName) -> Table:
    """The meaning of a name, a fact a row."""
    version = versioned(found.version, found.version_tag)
    return _facts(
        ("name", found.name),
        ("version", version),
        ("fqdn", found.fqdn),
        ("found in", f"{found.found_in} {found.scope}"),
        ("record", str(found.record_id)),
        ("capability", str(found.capability_id)),
        ("source", found.source_type),
        ("health", health_text(found.health, found.last_good)),
    )


def record_lines(found: Whois) -> list[str | Table]:
    """A headline, the description, and the facts of a record."""
    record = found.record
    count = f"{len(found.versions)} version{'s' if len(found.versions) != 1 else ''}"
    version = versioned(record.version, record.version_tag)
    facts = _facts(
        ("fqdn", found.fqdn),
        ("owner", record.owner),
        ("created", f"{_time(record.created_at)} by {record.created_by}"),
        ("updated", _time(record.updated_at)),
        ("visibility", f"{record.visibility}, found in {found.found_in}"),
        ("tags", ", ".join(record.tags)),
        ("former names", ", ".join(_former_names(record.aliases))),
        ("copied from", record.forked_from or ""),
        ("made of", ", ".join(found.merged_from)),
        ("parameters", ", ".join(_parameters(record.parameters_schema))),
        ("tools", ", ".join(record.tools_used)),
        ("source", source_text(record.source)),
        ("cache", cached_how(record.cache.model_dump())),
        ("use", use_text(found.usage)),
        ("success", rate_text(found.usage) if found.usage.judged else ""),
        ("use in all", use_text(found.record_usage) if found.record_usage else ""),
        ("health", health_text(record.health, record.last_good)),
        ("yanked", record.yanked_reason or ""),
        ("record", str(record.record_id)),
        ("capability", str(record.capability_id)),
    )
    title = f"[bold]{escape(record.name)}[/] [green]{version}[/] [dim]| {count}[/]"
    described = [escape(record.description)] if record.description else []
    return [title, *described, "", facts]


def versions_table(found: Whois) -> Table:
    """The versions of a record, a row each; yanked ones are red, with the reason."""
    headings = (
        "version",
        "tag",
        "created",
        "by",
        "runs",
        "success",
        "not judged",
        "signed",
        "health",
        "summary",
    )
    table = Table(*headings, box=None)
    for one in found.versions:
        said = one.change_summary
        if one.yanked_reason is not None:
            said = f"yanked: {one.yanked_reason}"
        shown = one.version == found.record.version
        texts = (
            str(one.version),
            one.version_tag or "",
            _time(one.created_at),
            one.created_by,
            str(one.usage.count),
            rate_text(one.usage),
            others_text(one.usage),
            _signed(one),
        )
        style = "red" if one.yanked_reason is not None else "bold" if shown else None
        health = health_text(one.health)
        table.add_row(*map(escape, texts), health, escape(short(said, _LONGEST)), style=style)
    return table


def records_table(page: RecordPage) -> Table:
    """Records, a row each, by the names that find them."""
    headings = (
        "version",
        "who sees",
        "owner",
        "runs",
        "success",
        "updated",
        "health",
        "description",
    )
    table = Table(Column("name", no_wrap=True), *headings, box=None)
    scopes = {str(record.scope) for record in page.records}
    for record in page.records:
        name = record.name if len(scopes) == 1 else record.fqdn
        texts = (
            name,
            versioned(record.version, record.version_tag),
            record.visibility,
            record.owner,
            str(record.usage.count),
            rate_text(record.usage),
            _time(record.updated_at),
        )
        health = health_text(record.health, record.last_good)
        described = escape(short(record.description, _LONGEST))
        style = None if record.listed else "dim"
        table.add_row(*map(escape, texts), health, described, style=style)
    return table


def entry_lines(entry: HistoryEntry) -> Iterable[str]:
    """A change: what, when, who, its details and diff."""
    version = versioned(entry.version, entry.version_tag)
    yield (
        f"[yellow]#{entry.sequence}[/] [bold]{entry.change}[/]  version {version}  "
        f"[dim]{_time(entry.at)}  {escape(entry.principal)}[/]"
    )
    if entry.key_id is not None:
        when = "" if entry.signed_at is None else f" at {_time(entry.signed_at)}"
        yield f"    [dim]signed by[/] {escape(entry.key_id)}{when}"
    for name, value in entry.details.items():
        if value in (None, [], ""):
            continue
        yield f"    [dim]{escape(name)}[/] {escape(short(value, 240))}"
    for line in (entry.diff or "").splitlines():
        style = next((style for mark, style in _DIFF_STYLES if line.startswith(mark)), None)
        shown = escape(line)
        yield f"    [{style}]{shown}[/]" if style else f"    {shown}"


def change_line(kind: str, body: Mapping[str, object], changed: ChangedRecord) -> str:
    """The effect of a change, in a line."""
    record = changed.record
    if kind == "merge":
        said = f"{record.name} is made of {', '.join(changed.merged_from)}"
    elif kind != "tag":
        said = _CHANGED[kind].format_map(body)
    elif "version_tag" in body:
        said = f"{body['name']} has the tag {body['version_tag']}"
    else:
        said = f"{record.name} has the tags {', '.join(record.tags) or '(none)'}"
    remark = "" if changed.changed else "; nothing had to be changed"
    return f"[green]✓[/] {escape(said + remark)}  [dim]{escape(changed.fqdn)}[/]"


def versioned(version: int, tag: str | None) -> str:
    """A version by number, with its tag."""
    return f"{version} ({tag})" if tag else str(version)


def _facts(*facts: tuple[str, str]) -> Table:
    """A table of names and values, without those that are empty."""
    table = Table(Column(style="dim", no_wrap=True), Column(), box=None, show_header=False)
    for name, value in facts:
        if value:
            table.add_row(name, value if name == "health" else escape(value))
    return table


def _parameters(schema: JsonObject) -> list[str]:
    """Names of the parameters; optional ones with a question mark."""
    properties, required = schema.get("properties"), schema.get("required")
    names = list(properties) if isinstance(properties, dict) else []
    needed = required if isinstance(required, list) else []
    return [name if name in needed else f"{name}?" for name in names]


def _former_names(aliases: Iterable[str]) -> list[str]:
    """Names that somebody gave."""
    return [name for name in aliases if not name.startswith(UNNAMED)]


def _signed(version: VersionSummary) -> str:
    """By which key, when, and whether the version is verified."""
    if version.key_id is None:
        return "no"
    when = "" if version.signed_at is None else f" {_time(version.signed_at)}"
    return f"{version.key_id[:8]}{when}{', verified' if version.verified else ''}"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
