"""References to capabilities: parsing and printing are inverses, and errors say what is wrong."""

import re
from datetime import date
from string import ascii_lowercase, digits
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.display_names import (
    RESERVED_NAMESPACES,
    BadName,
    DisplayName,
    parse_display_name,
)
from pml_common.contracts.references import (
    Day,
    Fqdn,
    Latest,
    Number,
    Reference,
    ScopedName,
    Tag,
    Unnamed,
    parse_fqdn,
    parse_reference,
    parse_selector,
)
from pml_common.contracts.scope import Scope

FS_READ = DisplayName("fs", "read_json")
WEBAPP = Scope(org="acme", project="webapp")
HEX = "0123456789abcdef"

LETTERS = st.sampled_from(ascii_lowercase)
TOKENS = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,62}", fullmatch=True)
SCOPES = st.builds(Scope, org=TOKENS, project=TOKENS)
NAMES = st.builds(
    DisplayName,
    st.builds(str.__add__, LETTERS, st.text(ascii_lowercase + digits + "-", max_size=28)).filter(
        lambda namespace: namespace not in RESERVED_NAMESPACES
    ),
    st.builds(str.__add__, LETTERS, st.text(ascii_lowercase + digits + "_", max_size=28)),
)
FQDNS = st.builds(Fqdn, SCOPES, NAMES, st.text(HEX, min_size=4, max_size=32))
TARGETS = st.one_of(
    NAMES,
    st.builds(ScopedName, SCOPES, NAMES),
    FQDNS,
    st.builds(Unnamed, st.text(HEX, min_size=4, max_size=64).map("unnamed_{}".format)),
    st.uuids(),
)
COUNTS = st.integers(0, 999_999_999)
SELECTORS = st.one_of(
    st.just(Latest()),
    st.builds(Number, st.integers(1, 999_999_999)),
    st.builds(Tag, st.lists(COUNTS, min_size=1, max_size=3).map(tuple)),
    st.builds(Day, st.dates()),
)


@given(SELECTORS)
def test_selectors_are_parsed_as_they_are_printed(selector: Latest | Number | Tag | Day) -> None:
    assert parse_selector(str(selector)) == selector


@given(FQDNS)
def test_fqdns_are_parsed_as_they_are_printed(fqdn: Fqdn) -> None:
    assert parse_fqdn(str(fqdn)) == fqdn


@given(st.builds(Reference, TARGETS, SELECTORS))
def test_references_are_parsed_as_they_are_printed(reference: Reference) -> None:
    assert parse_reference(str(reference)) == reference


@given(st.text(max_size=60))
def test_what_is_parsed_prints_as_it_was(text: str) -> None:
    try:
        reference = parse_reference(text)
    except BadName:
        return
    printed = text.strip().removeprefix("cap:").removesuffix("@latest")
    assert str(reference).removeprefix("cap:") == printed


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("fs:read_json", Reference(FS_READ)),
        ("cap:fs:read_json", Reference(FS_READ)),
        (" fs:read_json@latest ", Reference(FS_READ)),
        ("cap:fs:read_json@v1", Reference(FS_READ, Tag((1,)))),
        ("fs:read_json@v1.2.0", Reference(FS_READ, Tag((1, 2, 0)))),
        ("fs:read_json@2", Reference(FS_READ, Number(2))),
        ("fs:read_json@2025-12-22", Reference(FS_READ, Day(date(2025, 12, 22)))),
        ("cap:acme.webapp:fs:read_json", Reference(ScopedName(WEBAPP, FS_READ))),
        ("acme.webapp.fs.read_json.a7f3", Reference(Fqdn(WEBAPP, FS_READ, "a7f3"))),
        (
            "cap:acme.webapp.fs.read_json.a7f3@3",
            Reference(Fqdn(WEBAPP, FS_READ, "a7f3"), Number(3)),
        ),
        ("unnamed_5d1c", Reference(Unnamed("unnamed_5d1c"))),
        # As long as a UUID.
        (f"fs:{'a' * 33}", Reference(DisplayName("fs", "a" * 33))),
        (
            "6f1d2f0e-7c7b-5c39-9b1a-0d6b3a3f8e51",
            Reference(UUID(hex="6f1d2f0e7c7b5c399b1a0d6b3a3f8e51")),
        ),
    ],
)
def test_a_reference_means(text: str, meant: Reference) -> None:
    assert parse_reference(text) == meant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fs:read@", "@ selects no version: allowed are @latest, @3 (its number), @v1 or @v1.2.0"),
        ("fs:read@0", "@0 selects no version"),
        ("fs:read@v1.2.3.4", "@v1.2.3.4 selects no version"),
        ("fs:read@v01", "@v01 selects no version"),
        ("fs:read@^1", "@^1 selects no version"),
        ("fs:read@2025-02-30", "@2025-02-30 is no day of the calendar"),
        ("acme.webapp.fs.read", "has 4 parts between dots, not 5: <org>.<project>.<namespace>"),
        ("acme.webapp.fs.read.xyz1", "the hash 'xyz1' is not 4 to 32 hexadecimal digits"),
        ("Acme.webapp.fs.read.a7f3", "the organisation 'Acme' is not valid"),
        ("acme.web app.fs.read.a7f3", "the project 'web app' is not valid"),
        ("acme.webapp.FS.read.a7f3", "the namespace 'FS' is not valid"),
        ("cap:acme.web.app:fs:read", "'acme.web.app' is no scope: <org>.<project>"),
        ("cap:a.b:fs", "'fs' has no colon"),
        ("read", "'read' has no colon"),
    ],
)
def test_an_error_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(BadName, match=re.escape(said)):
        parse_reference(text)


def test_printing_a_name_needs_no_prefix() -> None:
    assert str(Reference(parse_display_name("fs:read"))) == "fs:read"


@pytest.mark.parametrize("text", ["cap:acme.webapp:fs:read_json", "unnamed_5d1c"])
def test_other_names_are_printed_as_they_are_written(text: str) -> None:
    assert str(parse_reference(text)) == text
