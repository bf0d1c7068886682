"""Positions and quotations of the instrumented text, translated to the author's."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_executor.domain import instrumented as translation
from pml_executor.domain.instrumented import Instrumented
from services.executor.tests.support.builders import author_text, instrumented

EVERYTHING = """«const { items, kind } = args; const __pml_nodes = [["n1"],["n2"]]; »let found;
const read = async (p: string) => «{ const __pml_3 = __pml.entered("read", 1); return (»\
await «__pml.at(__pml_nodes[__pml_3][0], »mcp.fs.read«)»({ path: p })«); }»;
for (const item of items) {« __pml.round("l1");»
  if («__pml.decide("d3", »await «__pml.via(0, "read", »read«)»(item.p)«)») found = item;
  else «{ __pml.round("l2"); »while (true) «{ __pml.round("l3"); »break;« }»« }»
}
const all = items.map((i) => «(__pml.round("l4"), »i.id«)»);
«__pml.last(__pml.absent("d4", found), »found ??= await «__pml.at("n3", »mcp.api["a b"]«)»()«)»;
switch («__pml.subject("d5", »kind«)») {
  case ")": «__pml.chosen("d5", "case:)("); »all.push(1); break;
« default: __pml.chosen("d5", "default");»}
try { «__pml.at("n4", »mcp.api.c«)»({ "é𝒳": `${kind})` })« ; __pml.took("d6", "ok");» }
catch (e) {« __pml.took("d6", "error");» throw e; }
return («__pml.absent("d7", »found«)» ?? «__pml.at("n5", »mcp.api.b«)»()).x;"""


def program(marked: str) -> Instrumented:
    return Instrumented(*instrumented(marked))


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def sandbox_place(text: str, offset: int) -> tuple[int, int]:
    """Return Deno's position of an offset."""
    lines = re.split("\r\n|[\n\r]", text[:offset])
    return len(lines), utf16(lines[-1]) + 1


def authors_place(text: str, offset: int) -> tuple[int, int]:
    """Return the analyzer's position of an offset."""
    lines = re.split("\r\n|[\n\r\u2028\u2029]", text[:offset])
    return len(lines), len(lines[-1]) + 1


def check_every_place(marked: str) -> None:
    it, written = program(marked), author_text(marked)
    inserted = {place for start, end in it.insertions for place in range(start, end)}
    kept = [place for place in range(len(it.text)) if place not in inserted]
    assert "".join(it.text[place] for place in kept) == written
    for index, offset in enumerate(kept):
        if it.text[offset] in "\r\n":
            continue  # no error is at a line's end
        if it.text[offset - 1 : offset + 1] == ")(":
            continue  # the bracket of a call, reported where its callee ends
        assert it.offset(*sandbox_place(it.text, offset)) == offset
        assert it.author_position(offset) == authors_place(written, index)


def test_every_place_of_the_author_is_found_again() -> None:
    check_every_place(EVERYTHING)


# Without \r and \n beside each other: an insertion between the two would make two line ends of one.
_TEXT = st.text(st.sampled_from('ab é𝒳\n\u2028"(){};'), max_size=8)


@given(st.lists(st.tuples(_TEXT, st.sampled_from(["", '__pml.decide("d1", ', ")", "; ", " { "]))))
def test_whatever_was_put_in_every_place_of_the_author_is_found_again(
    parts: list[tuple[str, str]],
) -> None:
    check_every_place("".join(f"{text}«{put}»" if put else text for text, put in parts))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way(end: str) -> None:
    check_every_place("const a = 1;\n«f(»b«)»;\n\n  c«(»d«)»;".replace("\n", end))


@pytest.mark.parametrize(
    ("marked", "place"),
    [
        ('if («__pml.de^cide("d1", »f()«)») g();', (1, 5)),
        ('const x = «__pml.at("n1", »a.b.call«^)»(1);', (1, 15)),
        ('const x = «__pml.at("n1", »(a.call)!«^)»(1);', (1, 14)),
        ('const x = «__pml.at("n1", »(a.call^)«)»(1);', (1, 14)),
        ('const x = «__pml.at("n1", »a[0]«^)»(1);', (1, 15)),
        ('a();\n«{ __pml.^round("l1"); »f();« }»', (2, 1)),
        ("«const { a } = ar^gs; »a();", (1, 1)),
    ],
)
def test_a_place_in_an_insertion_is_what_it_was_put_to(marked: str, place: tuple[int, int]) -> None:
    text, _ = instrumented(marked)
    assert program(marked.replace("^", "")).author_position(text.index("^")) == place


@pytest.mark.parametrize(
    ("marked", "column"),
    [
        ('const x = «__pml.at("n1", »a.b«)»^(1);', 13),
        ('(«__pml.absent("d1", »a«)» ?? b)^();', 8),
        ("^(1)();", 1),
    ],
)
def test_the_bracket_of_a_call_is_where_its_callee_ends(marked: str, column: int) -> None:
    text, _ = instrumented(marked)
    it = program(marked.replace("^", ""))
    offset = it.offset(1, utf16(text[: text.index("^")]) + 1)
    assert it.author_position(offset) == (1, column)


def test_a_place_that_is_not_there_is_none() -> None:
    it = program("a«b»\nc")
    assert [it.offset(0, 1), it.offset(3, 1), it.offset(1, 99), it.offset(2, -7)] == [
        None,
        None,
        3,
        3,
    ]
    assert it.author_position(None) == (None, None)


def test_without_insertions_nothing_moves() -> None:
    it = Instrumented("a;\n__pml.at(b)()")
    assert it.author_position(it.offset(2, 4)) == (2, 4)
    assert it.author_message("__pml.at(...) is not a function", 3) == (
        "__pml.at(...) is not a function"
    )


@pytest.mark.parametrize(
    ("marked", "message", "told"),
    [
        (
            'a.x = «__pml.at("n1", »a.b«^)»(1).map(1);',
            "__pml.at(...) is not a function",
            "a.b is not a function",
        ),
        (
            'b = «__pml.at("n1", »f«)»(«__pml.at("n2", »g«)»(1)).^map(1);',
            "__pml.at(...)(...).map is not a function",
            "f(...).map is not a function",
        ),
        (
            'b = «__pml.at("n1", »«__pml.at("n2", »f«)»(1).q«^)»(1);',
            "__pml.at(...) is not a function",
            "f(1).q is not a function",
        ),
        (
            'const {^x} = «__pml.at("n1", »f«)»(«__pml.at("n2", »g«)»(1));',
            "Cannot destructure property 'x' of '__pml.at(...)(...)' as it is undefined.",
            "Cannot destructure property 'x' of 'f(...)' as it is undefined.",
        ),
        (
            'for (const x of «__pml.at("n1", »^f«)»(1)) {}',
            "__pml.at is not a function or its return value is not iterable",
            "f is not a function or its return value is not iterable",
        ),
        (
            '(«__pml.decide("d1", »a.ok«)» && «__pml.absent("d2", »q«)» ?? z^)();',
            "(__pml.decide(...) && __pml.absent(...) ?? z) is not a function",
            "(a.ok && q ?? z) is not a function",
        ),
        (
            'const {^y} = «__pml.last(__pml.decide("d1", q), »q &&= «__pml.at("n1", »f«)»()«)»;',
            "Cannot destructure property 'y' of '__pml.last(...)' as it is undefined.",
            "Cannot destructure property 'y' of 'q &&= f()' as it is undefined.",
        ),
        (
            's(")", `(`); // (\n«__pml.via(2, "k", »o\n  [ "x y" ]«^)»();',
            "__pml.via(...) is not a function",
            'o [ "x y" ] is not a function',
        ),
        (
            'f(«__pml.at("n1", »g«)»()); ^h(1);',
            "__pml.at(...) is not a function",
            "__pml.at(...) is not a function",
        ),
        (
            '«__pml.at("n1", »a' + ".long" * 30 + "«^)»(1);",
            "__pml.at(...) is not a function",
            "a" + ".long" * 15 + ".lon… is not a function",
        ),
        (
            '«)»«const __pml_nodes = [["(", 1]]; »«__pml.at("((", »f«^)»(1);',
            "__pml.at(...) is not a function",
            "f is not a function",
        ),
    ],
)
def test_what_a_message_quotes_is_quoted_from_the_author(
    marked: str, message: str, told: str
) -> None:
    text, _ = instrumented(marked)
    it = program(marked.replace("^", ""))
    assert it.author_message(message, text.index("^")) == told


def test_where_an_error_arose_may_be_unknown() -> None:
    one = program('«__pml.at("n1", »f«)»(1);')
    assert one.author_message("__pml.at(...) is no function", None) == "f is no function"
    two = program('«__pml.at("n1", »f«)»(«__pml.at("n2", »g«)»(1));')
    assert two.author_message("__pml.at(...) is no function", None).startswith("__pml")


def test_the_cost_of_an_error_in_a_large_program_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 10_000
    it = program('await «__pml.at("n1", »api.f«)»({ a: [1, (2)] });\n' * calls + "x.y();")
    scanned = 0

    def counting(text: str) -> Sequence[int]:
        nonlocal scanned
        scanned += len(text)
        return balances(text)

    balances = translation._balances  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(translation, "_balances", counting)
    told = it.author_message("__pml.at(...) __pml.via(...) is not a function" * 80, len(it.text))
    place = it.author_position(len(it.text) - 1)
    assert scanned < len(it.text)
    assert told.startswith("api.f __pml.via(...) is")
    assert place == (calls + 1, 6)
