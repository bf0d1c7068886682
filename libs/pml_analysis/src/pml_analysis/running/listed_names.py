"""Lists of servers and tools in the text that runs, for the places that read them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pml_analysis.structure.listings import Listing, Path
from pml_analysis.syntax.edits import Edited, Wrap
from pml_analysis.typing.type_text import quoted

_TABLE: Final = "__pml_names"


def reading_lists(listings: Sequence[Listing]) -> list[Wrap]:
    """Rewrite `Object.keys(E)` → `Object.keys((E, __pml_names[0]))`, and the others likewise."""
    paths = paths_of(listings)
    return [
        Wrap(node.start, node.end, "(", f", {_TABLE}[{paths.index(path)}])")
        for node, path in listings
    ]


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
    lists = (offered if not path else offered.get(path[0], ()) for path in paths)
    table = f"const {_TABLE} = [{', '.join(map(_object, lists))}]; "
    length = len(table)
    moved = ((start + length, end + length) for start, end in runs.insertions)
    return Edited(f"{table}{runs.text}", ((0, length), *moved))


def _object(names: Collection[str]) -> str:
    """Return an object with these names and no other."""
    return f"{{ __proto__: null{''.join(f', [{quoted(name)}]: 0' for name in sorted(names))} }}"
