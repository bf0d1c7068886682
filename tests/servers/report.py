"""Report of a run on real MCP servers."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_COLUMNS = ("server", "package", "transport", "protocol", "seconds", "tools", "called", "declares")


@dataclass(frozen=True)
class Outcome:
    """One server: what the stack says of it. `seconds` are from the gateway's start until its tools
    were listed, while all others started; `called` is the status of a call, empty without one."""

    title: str
    package: str
    transport: str
    protocol: str = ""
    seconds: float | None = None
    tools: int = 0
    declares: tuple[str, ...] = ()
    called: str = ""
    ready: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def row(self) -> tuple[str, ...]:
        """Its cells in the table."""
        seconds = "-" if self.seconds is None else f"{self.seconds:.1f}"
        others = ", ".join(each for each in self.declares if each != "tools")
        return (
            self.title,
            self.package,
            self.transport,
            self.protocol,
            seconds,
            str(self.tools) if self.ready else "failed",
            self.called.partition(":")[0],
            others,
        )


def table_of(outcomes: Sequence[Outcome]) -> str:
    """Return a table for a terminal, with remarks below their server."""
    rows = [_COLUMNS, *(one.row for one in outcomes)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(_COLUMNS))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    for number, one in enumerate(outcomes, 1):
        notes = (*one.remarks, *([one.called] if ":" in one.called else []))
        lines[number] = "\n".join((lines[number], *(f"    {note}" for note in notes)))
    return "\n".join(lines)


def page_of(outcomes: Sequence[Outcome]) -> str:
    """Return the report as a page."""
    ready = [one for one in outcomes if one.ready]
    transports = {name: sum(one.transport == name for one in ready) for name in _TRANSPORTS}
    lines = [
        "# Real MCP servers",
        "",
        "Written by `make servers`: servers that nobody here wrote, pinned, all at once behind one "
        "embedded stack. What they cannot do behind PML: [docs/servers.md](../servers.md#tried).",
        "",
        f"- result: {len(ready)} of {len(outcomes)} connected and listed "
        f"({', '.join(f'{count} {name}' for name, count in transports.items())}), "
        f"{sum(one.tools for one in ready)} tools",
        f"- at: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.system()} {platform.machine()}",
        "- seconds: from the gateway's start until the tools were listed, all starting at once",
        "- called: a tool of it through the whole stack, where one needs nothing but this machine",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{' --- |' * len(_COLUMNS)}",
        *(f"| {' | '.join(one.row)} |" for one in outcomes),
    ]
    remarks = [f"- {one.title}: {remark}" for one in outcomes for remark in one.remarks]
    return "\n".join([*lines, *(["", "Set aside, or failed:", *remarks] if remarks else [])]) + "\n"


_TRANSPORTS = ("stdio", "http", "sse")
