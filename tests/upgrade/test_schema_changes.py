"""Changes that services of the last release would notice."""

from dataclasses import replace

import pytest

from tests.upgrade.schema_changes import Column, Rule, Schema, breaks, contract_of

TEXT, NEEDED = Column("text"), Column("text", needed=True)
KEY = Rule("p", frozenset({"id"}))
RELEASED = Schema(
    {"run": {"id": NEEDED, "note": TEXT}}, {"run": {"run_pkey": KEY}}, {"seen(text)": "text"}, set()
)


def _with(**columns: Column) -> Schema:
    return replace(RELEASED, columns={"run": columns})


@pytest.mark.parametrize(
    "now",
    [
        RELEASED,
        _with(id=NEEDED, note=TEXT, more=TEXT),
        _with(id=TEXT, note=TEXT),
        replace(RELEASED, columns={**RELEASED.columns, "other": {"id": NEEDED}}),
        replace(RELEASED, functions={**RELEASED.functions, "other(text)": "text"}),
        replace(RELEASED, rules={"run": {"other_key": KEY}}),
    ],
    ids=["nothing", "nullable", "default", "table", "function", "key under another name"],
)
def test_an_expansion_breaks_nothing(now: Schema) -> None:
    assert list(breaks(RELEASED, now)) == []


@pytest.mark.parametrize(
    ("now", "complaint"),
    [
        (replace(RELEASED, columns={}), "run: dropped or renamed"),
        (_with(id=NEEDED), "run.note: dropped or renamed"),
        (_with(id=NEEDED, note=Column("integer")), "run.note: text became integer"),
        (_with(id=NEEDED, note=NEEDED), "run.note: not null without a default now"),
        (
            _with(id=NEEDED, note=TEXT, more=NEEDED),
            "run.more: new, not null and without a default",
        ),
        (replace(RELEASED, rules={}), "run: key run_pkey dropped"),
        (
            replace(
                RELEASED, rules={"run": {"run_pkey": KEY, "c": Rule("c", frozenset({"note"}))}}
            ),
            "run: new rule c on columns of the release",
        ),
        (replace(RELEASED, functions={}), "seen(text): dropped, or returns something else"),
        (replace(RELEASED, secured={"run"}), "run: under row-level security now"),
    ],
)
def test_what_the_release_uses_stays(now: Schema, complaint: str) -> None:
    assert list(breaks(RELEASED, now)) == [complaint]


def test_a_migration_says_which_one_it_completes() -> None:
    assert contract_of("-- Readers use note_text.\n-- contract of 0002_note.sql\nDROP …") == (
        "0002_note.sql"
    )
    assert contract_of("SELECT 1; -- no contract of anything") is None
