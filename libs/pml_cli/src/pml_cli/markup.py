"""Lines with rich's markup, written without rich: only what is laid out (tables, trees) is worth
its import.

Of rich's tags `[bold]…[/]` is known, with one or more of the words below.
"""

import os
import re
from collections.abc import Iterator
from typing import Final, TextIO

from pml_common.text.visible import LAYOUT, visible

_TAG: Final = re.compile(r"(\\*)\[([a-z#/@][^[]*?)]")
_ATTRIBUTES: Final = {"bold": "1", "dim": "2"}
_COLOURS: Final = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def escape(text: str) -> str:
    """Make a text plain in markup."""
    escaped = _TAG.sub(r"\1\1\\[\2]", text)
    ends_in_one = escaped.endswith("\\") and not escaped.endswith("\\\\")
    return escaped + "\\" if ends_in_one else escaped


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream shows styles, as rich finds it out."""
    compatible = os.environ.get("TTY_COMPATIBLE")
    if compatible in ("0", "1"):
        return compatible == "1"
    forced = os.environ.get("FORCE_COLOR")
    return stream.isatty() if forced is None else bool(forced)


def write_line(stream: TextIO, markup: str) -> None:
    """Write markup as a line that is not wrapped, and only with styles of ours, on a terminal
    alone."""
    shown = visible(markup, LAYOUT)
    stream.write("".join(_styled(stream, shown)) + "\n")


def _styled(stream: TextIO, markup: str) -> Iterator[str]:
    known = _codes(stream)
    open_: list[str] = []
    for text, tag in _parts(markup):
        codes = ";".join(known[word] for style in open_ for word in style.split() if word in known)
        yield f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text
        if tag.startswith("/"):
            open_.pop()
        elif tag:
            open_.append(tag)


def _codes(stream: TextIO) -> dict[str, str]:
    if not is_terminal(stream) or os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return {}
    return _ATTRIBUTES if os.environ.get("NO_COLOR") else {**_ATTRIBUTES, **_COLOURS}


def _parts(markup: str) -> Iterator[tuple[str, str]]:
    """Each text with the tag that ends it; the last has none."""
    text, begun = "", 0
    for found in _TAG.finditer(markup):
        slashes = len(found[1])
        text += _plain(markup[begun : found.start()]) + "\\" * (slashes // 2)
        begun = found.end()
        if slashes % 2:
            text += f"[{found[2]}]"
        else:
            yield text, found[2]
            text = ""
    yield text + _plain(markup[begun:]), ""


def _plain(text: str) -> str:
    return text.replace("\\[", "[")
