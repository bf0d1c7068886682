"""Lists of servers and tools in the text that runs, for the places that read them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pml_analysis.structure.listings import ANY_SERVER, Listing, Path
from pml_analysis.syntax.edits import Edited, Wrap
from pml_analysis.typing.type_text import quoted

_TABLE: Final = "__pml_names"


def reading_lists(listings: Sequence[Listing]) -> list[Wrap]:
    """Rewrite `Object.keys(E)` → `Object.keys((E, __pml_names[0]))`, and the others likewise;
    `Object.keys(E[name])` → `Object.keys(((E, __pml_names[0])[name] ?? {}))`."""
    paths = paths_of(listings)
    wraps: list[Wrap] = []
    for node, path in listings:
        read = node
        if path == ANY_SERVER:
            wraps.append(Wrap(node.start, node.end, "(", " ?? {})"))
            read = node.inner.children[0]
        wraps.append(Wrap(read.start, read.end, "(", f", {_TABLE}[{paths.index(path)}])"))
    return wraps


def paths_of(listings: Sequence[Listing]) -> tuple[Path, ...]:
    """Return what is listed, each once."""
    return tuple(dict.fromkeys(path for _, path in listings))


def with_lists(
    runs: Edited, paths: Sequence[Path], offered: Mapping[str, Collection[str]]
) -> Edited:
    """Return a program that runs with its lists, before everything else on the first line;
    `offered` are the names of tools by server."""
    if not paths:
        return runs
    table = f"const {_TABLE} = [{', '.join(_list(path, offered) for path in paths)}]; "
    length = len(table)
    moved = ((start + length, end + length) for start, end in runs.insertions)
    return Edited(f"{table}{runs.text}", ((0, length), *moved))


def _list(path: Path, offered: Mapping[str, Collection[str]]) -> str:
    if path == ANY_SERVER:
        return _object({server: _object(dict.fromkeys(offered[server], "0")) for server in offered})
    return _object(dict.fromkeys(offered.get(path[0], ()) if path else offered, "0"))


def _object(values: Mapping[str, str]) -> str:
    """Return an object with these names and no other."""
    fields = (f", [{quoted(name)}]: {values[name]}" for name in sorted(values))
    return f"{{ __proto__: null{''.join(fields)} }}"
