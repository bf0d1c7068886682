"""Imported for its effect: builds the validator of every contract at once, instead of at the first
use. Services import it, before they fork or serve; commands use few contracts and do not."""

from collections.abc import Iterator

# Imports them all.
from pml_common.contracts import catalog  # noqa: F401  # pyright: ignore[reportUnusedImport]
from pml_common.contracts.base import Contract


def _below(base: type[Contract]) -> Iterator[type[Contract]]:
    for contract in base.__subclasses__():
        yield contract
        yield from _below(contract)


for _contract in set(_below(Contract)):
    _contract.model_rebuild()
