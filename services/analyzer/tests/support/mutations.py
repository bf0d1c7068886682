"""Texts that are nearly programs: real ones with characters, words or whole expressions exchanged.

Three depths: characters of every sort, words of the language, nodes of the tree in the place of
others of their kind. hypothesis draws them, and minimises those that fail.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from hypothesis import strategies as st
from tree_sitter import Node

from services.analyzer.tests.support.tool_calls import parse, text_of

_SHORTEST = 6
_MAX_LENGTH = 4_000
_WORDS: Final = re.findall(
    r"\S+",
    r"""const let var mcp . fs read stat capabilities call ( ) { } [ ] ; , => ? : = + - * / % ** &&
    || ?? ?. ... ! ~ ` ${ ' " /* */ // <!-- --> if else for of in while do switch case default try
    catch finally return throw break continue async await yield function function* class extends
    super static get set new typeof void delete instanceof import export from eval args params
    input context path this arguments 0 1 0x 1e999 1n 'a' `b` /r/ < > @ # \ \u0061 \u{6d}cp as
    satisfies enum label: namespace declare abstract accessor using with debugger &&= ??= ||= ++ --
    __pml __pml_3 __pml_nodes constructor __proto__ prototype Promise .all( .map( .then( #!x""",
)
_CHARACTERS: Final = ["\n", "\r", "\r\n", "\0", "\ud800", "\udc00", "\u2028", "\ufeff", "\u200b"]
_LETTERS: Final = ["é", "\U0001f600", "\u0301", "\u0441", "\ufe0f", "\x1b", "\t", "\\", "$", "_"]
_WORD = st.sampled_from([*_WORDS, *_CHARACTERS, *_LETTERS])
_SOUP = st.lists(_WORD, max_size=60).flatmap(
    lambda words: st.sampled_from(["", " ", "\n"]).map(lambda space: space.join(words))
)
_Edit = tuple[int, int, str]
"""At a position, in thousandths of the text, this many characters become this text."""


def snippets(folder: Path) -> list[str]:
    """Return every text in the Python files of a folder that may be a program."""
    found: dict[str, None] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and _SHORTEST < len(text) < _MAX_LENGTH and _is_code(text):
                found[text] = None
    return list(found)


def _is_code(text: str) -> bool:
    return any(sign in text for sign in ("mcp.", "(", "=>", "{", "="))


def statements(program: str) -> list[str]:
    """Return the statements of a program, nested ones too, that are neither short nor long."""
    return [
        text
        for node in _nodes(program)
        if _sort(node) == "statement" and _SHORTEST * 10 < len(text := text_of(node)) < _MAX_LENGTH
    ]


def texts(programs: Sequence[str]) -> st.SearchStrategy[str]:
    """Draw texts to analyse: `programs`, damaged to various degrees, and texts that never were
    any."""
    one = st.sampled_from(programs)
    return st.one_of(
        st.text(max_size=80),
        _SOUP,
        st.builds(_edited, one, st.lists(_edits(one), min_size=1, max_size=4)),
        st.builds(_edited, one, st.lists(_edits(one), max_size=1)),
        _exchanged(programs),
        st.builds(_edited, _exchanged(programs), st.lists(_edits(one), min_size=1, max_size=2)),
        st.lists(one, min_size=2, max_size=4).map("\n".join),
        st.tuples(one, st.integers(1, 40)).map(lambda drawn: _nested(*drawn)),
        st.tuples(one, st.integers(0, 1000)).map(lambda drawn: _escaped(*drawn)),
    )


def _edits(one: st.SearchStrategy[str]) -> st.SearchStrategy[_Edit]:
    piece = st.tuples(one, st.integers(0, 1000), st.integers(1, 60)).map(
        lambda drawn: drawn[0][_at(drawn[0], drawn[1]) :][: drawn[2]]
    )
    return st.tuples(
        st.integers(0, 1000),
        st.sampled_from([0, 0, 1, 2, 5, 20, 100]),
        st.one_of(st.just(""), _WORD, piece, st.text(max_size=3)),
    )


def _edited(text: str, edits: Iterable[_Edit]) -> str:
    for place, length, other in edits:
        at = _at(text, place)
        text = text[:at] + other + text[at + length :]
    return text


def _at(text: str, thousandths: int) -> int:
    return len(text) * thousandths // 1000


def _nested(text: str, times: int) -> str:
    """Nest a text in itself."""
    return "{ if (a) {" * times + text + "} }" * times


def _escaped(text: str, place: int) -> str:
    """Write one letter as an escape."""
    at = _at(text, place)
    if at < len(text) and text[at].isalpha():
        return f"{text[:at]}\\u{{{ord(text[at]):x}}}{text[at + 1 :]}"
    return text


def _exchanged(programs: Sequence[str]) -> st.SearchStrategy[str]:
    """Draw programs of which some nodes are replaced by nodes of the same kind from other
    programs."""
    pool: dict[str, list[str]] = {}
    for program in programs:
        for node in _nodes(program):
            pool.setdefault(_sort(node), []).append(text_of(node))
    choices = {sort: list(dict.fromkeys(found)) for sort, found in pool.items()}

    @st.composite
    def draw_one(draw: st.DrawFn) -> str:
        text = draw(st.sampled_from(programs))
        for _ in range(draw(st.integers(1, 3))):
            nodes = _nodes(text)
            if nodes:
                node = nodes[draw(st.integers(0, len(nodes) - 1))]
                other = draw(st.sampled_from(choices.get(_sort(node), [""])))
                data = text.encode()
                parts = (data[: node.start_byte], other.encode(), data[node.end_byte :])
                text = b"".join(parts).decode()
        return text

    return draw_one()


def _nodes(text: str) -> list[Node]:
    """Return the named nodes of a text that parses, and that UTF-8 can hold."""
    try:
        found = [parse(text)]
    except UnicodeEncodeError:
        return []
    for node in found:
        found.extend(node.named_children)
    return found[1:]


def _sort(node: Node) -> str:
    """Return the sort of a node: expressions may stand for each other, statements too."""
    kind = node.type
    if kind.endswith("_statement") or kind.endswith("_declaration"):
        return "statement"
    is_value = kind.endswith(("_expression", "_function", "_string")) or kind in _VALUES
    return "expression" if is_value else kind


_VALUES: Final = frozenset(
    {"array", "class", "identifier", "null", "number", "object", "regex", "string", "this", "true"}
)
