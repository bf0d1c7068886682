"""Names of capabilities: given names, provisional names, and references to either.

Inside a scope a capability is named `namespace:action`, or `unnamed_<hash>` until it has such a
name; the prefix `cap:` makes either callable.
"""

import difflib
import re
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from pml_common.contracts.callable_names import callable_name

CALLABLE_PREFIX = "cap:"
UNNAMED_PREFIX = "unnamed_"
SHORTEST_HASH = 4

_MAX_SIMILAR = 3
_DIGITS = re.compile(r"_([0-9a-f]{4,32})$")
"""The suffix of digits of the id that makes a callable name unique."""


def unnamed_names(code_hash: str) -> Sequence[str]:
    """Provisional names, shortest first, each with one more hex digit."""
    return [
        f"{UNNAMED_PREFIX}{code_hash[:length]}"
        for length in range(SHORTEST_HASH, len(code_hash) + 1)
    ]


def first_free(names: Sequence[str], taken: Collection[str]) -> str:
    """The first name that is not taken. Raises LookupError when all are."""
    for name in names:
        if name not in taken:
            return name
    raise LookupError(f"all {len(names)} names are taken, including {names[-1]}")


def record_hash(name: str, code_hash: str) -> str:
    """The hash in a capability's fully qualified name; an unnamed one has it in its name."""
    if name.startswith(UNNAMED_PREFIX):
        return name.removeprefix(UNNAMED_PREFIX)
    return code_hash[:SHORTEST_HASH]


def parse_reference(reference: str) -> UUID | str:
    """Parse a caller's reference into an id or a name."""
    name = reference.strip()
    bare = name.removeprefix(CALLABLE_PREFIX)
    if bare != name and (":" in bare or bare.startswith(UNNAMED_PREFIX) or as_id(bare)):
        name = bare
    return as_id(name) or name


def similar_names(wanted: str, names: Collection[str]) -> Sequence[str]:
    """Names similar to `wanted`, the most similar first."""
    return difflib.get_close_matches(wanted, names, n=_MAX_SIMILAR, cutoff=0.6)


def resolve_reference(reference: str, names: Collection[tuple[str, UUID]]) -> UUID | None:
    """Resolve a reference in a program; `names` are all current and former names with ids, in the
    order they were given."""
    wanted = as_id(reference)
    tail = _DIGITS.search(reference)
    plain, digits = (reference[: tail.start()], tail[1]) if tail else ("", "")
    rules: Sequence[Callable[[str, UUID], bool]] = (
        lambda _, key: key == wanted,
        lambda name, _: name == reference,
        lambda name, _: callable_name(name) == reference,
        lambda name, key: bool(tail) and callable_name(name) == plain and key.hex.endswith(digits),
    )
    found = (key for matches in rules for name, key in names if matches(name, key))
    return next(found, None)


def similar_references(wanted: str, names: Collection[str]) -> Sequence[str]:
    """References similar to one in a program: callable names for a callable name."""
    known = names if ":" in wanted else list(map(callable_name, names))
    return similar_names(wanted, known)


def as_id(text: str) -> UUID | None:
    """Parse a UUID; None for any other text."""
    try:
        return UUID(text)
    except ValueError:
        return None
