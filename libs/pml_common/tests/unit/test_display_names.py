"""Display names: what is allowed, and what an error says of what is not."""

import re
from string import ascii_lowercase, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.display_names import (
    MAX_MCP_NAME,
    PATTERN,
    RESERVED_NAMESPACES,
    BadName,
    DisplayName,
    parse_display_name,
)

LETTERS = st.sampled_from(ascii_lowercase)
NAMESPACES = st.builds(
    str.__add__, LETTERS, st.text(ascii_lowercase + digits + "-", max_size=31)
).filter(lambda namespace: namespace not in RESERVED_NAMESPACES)
ACTIONS = st.builds(str.__add__, LETTERS, st.text(ascii_lowercase + digits + "_", max_size=57))


def test_the_pattern_bounds_each_part() -> None:
    assert PATTERN == "^[a-z][a-z0-9-]{0,31}:[a-z][a-z0-9_]{0,57}$"


@given(NAMESPACES, ACTIONS)
def test_printing_and_parsing_are_inverses(namespace: str, action: str) -> None:
    name = DisplayName(namespace, action)
    if len(f"cap_{namespace}_{action}") > MAX_MCP_NAME:
        with pytest.raises(BadName, match="is too long by"):
            parse_display_name(str(name))
    else:
        assert parse_display_name(str(name)) == name


@given(st.one_of(st.text(max_size=80), st.from_regex(PATTERN)))
def test_a_text_is_refused_or_printed_as_it_is(text: str) -> None:
    try:
        name = parse_display_name(text)
    except BadName:
        return
    assert str(name) == text
    assert re.fullmatch(PATTERN, text)
    assert len("cap_" + callable_name(text)) <= MAX_MCP_NAME


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' has no colon: a name is namespace:action, as fs:read_json"),
        ("read_json", "'read_json' has no colon"),
        ("cap:fs:read", "'cap:fs:read' has more than one colon"),
        (":read", "the namespace is empty"),
        ("fs:", "the action is empty"),
        ("Fs:read", "the namespace 'Fs' is not valid: lower-case letters (a to z), digits and "),
        ("my_fs:read", "the namespace 'my_fs' is not valid"),
        ("fs:read-json", "the action 'read-json' is not valid: lower-case letters (a to z), "),
        ("fs:1st", "the action '1st' is not valid"),
        ("fs:lire_é", "the action 'lire_é' is not valid"),
        ("fs:read\n", "the action 'read\\n' is not valid"),
        ("a" * 33 + ":b", "has more than 32 characters"),
        ("dns:look", "the namespace 'dns' is reserved, as all of cap, dns, learn, meta, pml"),
        ("fs:" + "a" * 58, "is too long by 1: over MCP it is cap_<namespace>_<action>"),
    ],
)
def test_an_error_says_which_part_is_wrong(text: str, said: str) -> None:
    with pytest.raises(BadName, match=re.escape(said)):
        parse_display_name(text)
