"""Names of capabilities: the given ones, the provisional ones, and references to either (C1, C3).

Inside a scope a capability goes by `namespace:action`, or by `unnamed_<hash>` until it has such a
name; `cap:` before either makes it callable.
"""

import difflib
import re
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from pml_common.contracts.callable_names import callable_name

CALLABLE_PREFIX = "cap:"
UNNAMED_PREFIX = "unnamed_"
SHORTEST_HASH = 4

_NEAR = 3
_DIGITS = re.compile(r"_([0-9a-f]{4,32})$")
"""The end of a callable name that tells it apart by digits of the id."""


def unnamed_names(code_hash: str) -> Sequence[str]:
    """Provisional names, the preferred one first: each shows one hex digit more."""
    return [
        f"{UNNAMED_PREFIX}{code_hash[:length]}"
        for length in range(SHORTEST_HASH, len(code_hash) + 1)
    ]


def first_free(names: Sequence[str], taken: Collection[str]) -> str:
    """The first name that nobody holds. Raises LookupError when all are held."""
    for name in names:
        if name not in taken:
            return name
    raise LookupError(f"every one of {len(names)} names is taken, {names[-1]} among them")


def record_hash(name: str, code_hash: str) -> str:
    """The hash in a capability's fully qualified name; an unnamed one shows it in its name."""
    if name.startswith(UNNAMED_PREFIX):
        return name.removeprefix(UNNAMED_PREFIX)
    return code_hash[:SHORTEST_HASH]


def parse_reference(reference: str) -> UUID | str:
    """The id or the name that a caller means."""
    name = reference.strip()
    bare = name.removeprefix(CALLABLE_PREFIX)
    if bare != name and (":" in bare or bare.startswith(UNNAMED_PREFIX) or as_id(bare)):
        name = bare
    return as_id(name) or name


def near_names(wanted: str, names: Collection[str]) -> Sequence[str]:
    """Names that `wanted` may have been meant for, the nearest first."""
    return difflib.get_close_matches(wanted, names, n=_NEAR, cutoff=0.6)


def meant_by(reference: str, names: Collection[tuple[str, UUID]]) -> UUID | None:
    """The capability that a program names so; `names` are all names and former names with ids, in
    the order they were given."""
    wanted = as_id(reference)
    tail = _DIGITS.search(reference)
    plain, digits = (reference[: tail.start()], tail[1]) if tail else ("", "")
    ways: Sequence[Callable[[str, UUID], bool]] = (
        lambda _, key: key == wanted,
        lambda name, _: name == reference,
        lambda name, _: callable_name(name) == reference,
        lambda name, key: bool(tail) and callable_name(name) == plain and key.hex.endswith(digits),
    )
    found = (key for is_meant in ways for name, key in names if is_meant(name, key))
    return next(found, None)


def near_references(wanted: str, names: Collection[str]) -> Sequence[str]:
    """The same for a name in a program: near a callable name are callable names."""
    known = names if ":" in wanted else list(map(callable_name, names))
    return near_names(wanted, known)


def as_id(text: str) -> UUID | None:
    """The id that a text is, if it is one."""
    try:
        return UUID(text)
    except ValueError:
        return None
