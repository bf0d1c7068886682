"""What can go wrong in storage, apart from Postgres's own errors."""

from pml_common.disposition import Retryable


class StorageUnavailable(Retryable):
    """Postgres does not answer; nothing was changed. Try again later."""


class MigrationChanged(Exception):
    """A migration differs from the one that was applied; write a new one instead."""
