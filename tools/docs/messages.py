"""docs/messages.md: the message catalog as tables, one section for each owner.

`write` generates the page, `check` fails where it is out of date.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import (
    CONSUMERS,
    LISTENERS,
    MESSAGES,
    QUERIES,
    SERVICES,
    Consumer,
    MessageType,
    QueryType,
    Service,
)

PAGE = Path(__file__).parents[2] / "docs/messages.md"
FILES = "../libs/pml_common"
KINDS = {"evt": "event", "cmd": "command", "run": "event, until handled", "sig": "signal"}
HEAD = """\
# Messages
Generated from the message catalog (`pml_common/contracts/catalog.py`) by `make docs`; not to be
edited.

- An *event* is published by its owner, a *command* by the named sender; both are stored in a stream
  of the owner: events for days, commands and events *until handled* by their consumers. A
  *signal* is not stored.
- A *consumer* is durable: each message goes to one replica, at least once. A *listener* gets the
  message in every replica, at most once.
- *At once* is how many messages a consumer handles together; while messages are frequent, it
  fetches what is stored once in the given time.
- A *query* is sent by its clients and served by its owner; nothing is stored. Each query and reply
  is proven by a MAC (docs/decisions/0045-proven-queries.md).
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *(line for owner in SERVICES for line in _section(owner))])


def _section(owner: Service) -> Iterator[str]:
    messages = [entry for entry in MESSAGES if entry.owner == owner]
    queries = [entry for entry in QUERIES if entry.owner == owner]
    yield f"## {owner}"
    if messages:
        yield from _table(
            ("Name", "Kind", "Version", "Sender", "Consumers", "Listeners", "Description", "Files"),
            (_message_row(entry) for entry in messages),
        )
    if queries:
        yield from _table(
            ("Query", "Version", "Clients", "Description", "Files"),
            (_query_row(entry) for entry in queries),
        )
    consumers = [entry for entry in CONSUMERS if entry.service == owner]
    if consumers:
        yield from _table(
            ("Consumer", "Of", "At once", "Description"),
            (
                (f"`{entry.durable}`", f"`{entry.message.name}`", _batch(entry), entry.description)
                for entry in consumers
            ),
        )


def _message_row(entry: MessageType[Message]) -> tuple[str, ...]:
    consumers = (each.service for each in CONSUMERS if each.message is entry)
    listeners = (service for service, message in LISTENERS if message is entry)
    return (
        f"`{entry.name}`",
        KINDS[entry.kind],
        str(entry.version),
        entry.sender,
        ", ".join(consumers),
        ", ".join(listeners),
        entry.description,
        _files(f"{entry.kind}.{entry.owner}.{entry.name}.v{entry.version}"),
    )


def _batch(entry: Consumer[Message]) -> str:
    if entry.batch is None:
        return "1"
    return f"up to {entry.batch.most} in {entry.batch.within_s * 1000:g} ms"


def _query_row(entry: QueryType[Query, Contract]) -> tuple[str, ...]:
    name = f"qry.{entry.owner}.{entry.name}.v{entry.version}"
    return (
        f"`{entry.name}`",
        str(entry.version),
        ", ".join(entry.clients),
        entry.description,
        f"query: {_files(name)}; reply: {_files(f'{name}.reply')}",
    )


def _files(name: str) -> str:
    return f"[schema]({FILES}/schemas/{name}.json), [example]({FILES}/examples/{name}.json)"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(cells)} |"
    yield ""


def main(action: str) -> int:
    """Run `write` or `check`; the exit code is 1 when the page is out of date."""
    text = page()
    if action == "write":
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE}: out of date - run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "check"))
