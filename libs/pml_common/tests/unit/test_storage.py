"""Migrations and named queries, without a server."""

import pytest

from pml_common.storage.errors import MigrationChanged
from pml_common.storage.migrations import Migration, due, read_migrations
from pml_common.storage.queries import parse_queries

FIRST, SECOND = Migration("0001_a.sql", "SELECT 1"), Migration("0002_b.sql", "SELECT 2")


def test_only_what_was_not_applied_is_due() -> None:
    assert due([FIRST, SECOND], {FIRST.name: FIRST.sha256}) == [SECOND]


def test_a_migration_changed_after_it_was_applied_is_refused() -> None:
    with pytest.raises(MigrationChanged, match=r"0001_a\.sql was changed"):
        due([FIRST], {FIRST.name: "another"})


def test_the_inbox_comes_before_a_services_own_migrations() -> None:
    names = [migration.name for migration in read_migrations("pml_learner")]
    assert names[0] == "0000_inbox.sql"
    assert names == sorted(names)


def test_statements_are_found_by_name() -> None:
    text = "-- name: one-row\nSELECT 1;\n\n-- why\n-- name: two-rows\nSELECT 2\nUNION SELECT 3;\n"
    assert parse_queries(text) == {
        "one-row": "SELECT 1;\n\n-- why",
        "two-rows": "SELECT 2\nUNION SELECT 3;",
    }


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="given twice among a, a"):
        parse_queries("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;\n")
