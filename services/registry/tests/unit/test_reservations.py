"""Rights to a name, before anything runs under it."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from pml_common.contracts.display_names import parse_display_name
from pml_common.contracts.references import Tag
from pml_registry.domain.record_changes import Refused
from pml_registry.domain.reservations import (
    Purpose,
    Record,
    Refusal,
    Reservation,
    Reserve,
    Standing,
    Use,
    Wish,
    decide,
    description_of,
    holder_text,
    merge_refused,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIRST, SECOND, OTHER = (UUID(int=each) for each in (1, 2, 3))
OURS, THEIRS = UUID(int=10), UUID(int=11)
WISH = Wish(parse_display_name("fs:read"), OTHER, OURS, "ada")
RECORD = Record(
    UUID(int=20), "fs:read", "acme.web.fs.read.a7f3", "ada", (FIRST, SECOND), 2, (Tag((1, 0, 0)),)
)
HELD = Reservation("fs:read", THEIRS, OTHER, "create", "bob", NOW)


def refusal(wish: Wish, standing: Standing) -> str:
    """Return why the wish is refused."""
    decided = decide(wish, standing)
    assert isinstance(decided, Refusal), decided
    return decided.why


def test_a_free_name_is_reserved_for_new_code() -> None:
    assert decide(WISH, Standing()) == Reserve("create")
    assert decide(replace(WISH, update=True), Standing()) == Reserve("create")


@pytest.mark.parametrize(("behaviour", "number"), [(FIRST, 1), (SECOND, 2)])
def test_code_that_the_record_has_is_used(behaviour: UUID, number: int) -> None:
    wish = replace(WISH, behaviour=behaviour, principal="bob")
    assert decide(wish, Standing(holder=RECORD, of_code=RECORD)) == Use(RECORD, number)


def test_of_versions_with_the_same_code_the_newest_is_used() -> None:
    record = replace(RECORD, behaviours=(FIRST, SECOND, FIRST))
    wish = replace(WISH, behaviour=FIRST)
    assert decide(wish, Standing(holder=record)) == Use(record, 3)


def test_other_code_under_a_held_name_is_told_whose_it_is_and_the_ways_on() -> None:
    why = refusal(WISH, Standing(holder=RECORD))
    assert why == (
        "fs:read (acme.web.fs.read.a7f3, version 2) of ada is other code: choose another name, or "
        "send `update: true` to make this its version 3"
    )
    under_its_alias = replace(WISH, name=parse_display_name("fs:load"))
    assert refusal(under_its_alias, Standing(holder=RECORD)).startswith(
        "fs:load leads to fs:read (acme"
    )


def test_only_the_owner_or_an_admin_adds_a_version() -> None:
    update = replace(WISH, update=True)
    assert decide(update, Standing(holder=RECORD)) == Reserve("version", RECORD)
    bobs = replace(update, principal="bob")
    assert "only its owner or an admin" in refusal(bobs, Standing(holder=RECORD))
    admins = replace(bobs, is_admin=True)
    assert decide(admins, Standing(holder=RECORD)) == Reserve("version", RECORD)


def test_a_tag_stands_on_one_version() -> None:
    update = replace(WISH, update=True, tag=Tag((1, 0, 0)))
    assert "has a version v1.0.0 already" in refusal(update, Standing(holder=RECORD))
    new = replace(update, tag=Tag((1, 1, 0)))
    assert decide(new, Standing(holder=RECORD)) == Reserve("version", RECORD)


def test_known_code_gets_one_more_name_from_its_owner_only() -> None:
    wish = replace(WISH, behaviour=SECOND, name=parse_display_name("fs:load"))
    assert decide(wish, Standing(of_code=RECORD)) == Reserve("alias", RECORD)
    bobs = replace(wish, principal="bob")
    assert "this code is fs:read (acme.web.fs.read.a7f3) of ada" in refusal(
        bobs, Standing(of_code=RECORD)
    )
    admins = replace(bobs, is_admin=True)
    assert decide(admins, Standing(of_code=RECORD)) == Reserve("alias", RECORD)


def test_an_earlier_version_gets_no_name_that_would_lead_to_other_code() -> None:
    wish = replace(WISH, behaviour=FIRST, name=parse_display_name("fs:load"))
    assert refusal(wish, Standing(of_code=RECORD)) == (
        "this code is fs:read@1 (acme.web.fs.read.a7f3), and names of fs:read lead to its version "
        "2: run it as fs:read@1, or fork fs:read@1 as fs:load"
    )
    meant = replace(RECORD, latest=1)
    assert decide(wish, Standing(of_code=meant)) == Reserve("alias", meant)


def test_a_reserved_name_is_refused_to_others() -> None:
    why = refusal(WISH, Standing(reservation=HELD))
    assert why == (
        f"fs:read is reserved for workflow {THEIRS} of bob until that ends, or until "
        "2026-03-01T12:00:00+00:00 if it is not accepted by then: wait for its end, or choose "
        "another name"
    )


def test_a_name_with_the_same_callable_name_is_told() -> None:
    held = replace(HELD, name="fs-a:read")
    wish = replace(WISH, name=parse_display_name("fs:a_read"))
    assert "fs-a:read, which is called the same as fs:a_read, is reserved" in refusal(
        wish, Standing(reservation=held)
    )


def test_a_repeated_wish_renews_its_reservation() -> None:
    own = replace(HELD, workflow_id=OURS, purpose="version")
    standing = Standing(holder=RECORD, reservation=own)
    assert decide(replace(WISH, update=True), standing) == Reserve("version", RECORD)


def test_of_a_private_record_others_hear_that_the_name_is_taken_and_no_more() -> None:
    private = replace(RECORD, is_private=True)
    stranger = replace(WISH, principal="noor")
    for wish in (stranger, replace(stranger, update=True)):
        assert decide(wish, Standing(holder=private)) == Refusal(
            f"{wish.name} is taken: choose another name"
        )
    why = refusal(stranger, Standing(of_code=private))
    assert why == "somebody else keeps this code private: only its owner or an admin names it"
    assert holder_text("fs:mine", private, None) == "fs:mine is taken"
    owner = replace(stranger, principal=private.owner, update=True)
    assert isinstance(decide(owner, Standing(holder=private)), Reserve)


def test_who_has_a_name_is_said() -> None:
    taken = "fs:read (acme.web.fs.read.a7f3) of ada, which exists already"
    assert holder_text("fs:read", RECORD, None) == taken
    assert holder_text("fs:load", RECORD, HELD) == f"fs:load leads to {taken}"
    reserved = f"fs:read is reserved for workflow {THEIRS} of bob"
    assert holder_text("fs:read", None, HELD) == reserved
    assert holder_text("fs:read", None, None) is None


def test_a_merge_gets_a_free_name_and_code_without_one() -> None:
    assert merge_refused(None, None) is None
    named = merge_refused("fs:read of ada", RECORD)
    assert named == Refused("conflict", "fs:read of ada: choose another name")
    known = merge_refused(None, RECORD)
    assert known is not None
    assert "this program is fs:read (acme.web.fs.read.a7f3) of ada already" in known.why


@pytest.mark.parametrize(
    ("purpose", "intent", "own", "latest", "said"),
    [
        ("create", "count lines", "try it", "", "count lines"),
        ("create", " ", "try it", "", "try it"),
        ("version", "count lines", "try it", "greet", "count lines"),
        ("version", "", "try it", "greet", "greet"),
        ("version", "", "try it", "", "try it"),
        ("alias", "count lines", "try it", "", "try it"),
    ],
)
def test_the_run_or_the_version_before_says_what_a_version_is_for(
    purpose: Purpose, intent: str, own: str, latest: str, said: str
) -> None:
    held = replace(HELD, purpose=purpose, intent=intent)
    assert description_of(held, own, latest) == said
