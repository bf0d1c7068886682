"""Names of capabilities: given names, provisional names, and references to either.

Inside a scope a capability is named `namespace:action`, or `unnamed_<hash>` until it has such a
name; the prefix `cap:` makes either callable.
"""

import difflib
from collections.abc import Collection, Sequence
from uuid import UUID

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.display_names import DisplayName
from pml_common.contracts.references import Fqdn
from pml_common.contracts.scope import Scope

UNNAMED_PREFIX = "unnamed_"
SHORTEST_HASH = 4

_MAX_SIMILAR = 3


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


def fqdn_of(scope: Scope, name: str, record_id: UUID) -> str:
    """Return the fully qualified name of a record; a provisional name, which has none, as it is."""
    if name.startswith(UNNAMED_PREFIX):
        return name
    namespace, _, action = name.partition(":")
    return str(Fqdn(scope, DisplayName(namespace, action), record_id.hex[:SHORTEST_HASH]))


def similar_names(wanted: str, names: Collection[str]) -> Sequence[str]:
    """Names similar to `wanted`, the most similar first."""
    return difflib.get_close_matches(wanted, names, n=_MAX_SIMILAR, cutoff=0.6)


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
