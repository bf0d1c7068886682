"""HTML-like comments pass: signs from which an engine skips the rest of the line.

Scripts have such comments, modules have none, and the transpiler takes them in both. The grammar
knows them only where no operator fits, and reads `a <!--b` as `a < !(--b)`: what it takes for a
comment or a text after that may be code that runs. Therefore the signs are looked for in the text.
Up to the first one both readings are the same, so none is hidden from this one.
"""

import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Tree as RawTree

from pml_analysis.syntax.queries import captures
from pml_analysis.syntax.source import LINE_END, Source
from pml_analysis.text.problems import Problem

_OPENING: Final = "<!--"
_CLOSING: Final = "-->"
_SIGNS: Final = re.compile(f"{_OPENING}|{_CLOSING}")
_BYTE_ORDER_MARK: Final = "\ufeff"
"""A blank in JavaScript, though not in Python."""

_MESSAGES: Final = {
    _OPENING: "HTML comments are not allowed: write // or /* */; to compare, put a space: < !--.",
    _CLOSING: "HTML comments are not allowed, and --> first on a line begins one: write // or "
    "/* */; to compare, write -- and a space after the name, on its line.",
}


def html_comments(raw: RawTree, source: Source) -> Iterator[Problem]:
    """Return each `<!--`, and each `-->` that is first on its line, outside literals and
    comments."""
    signs = list(_SIGNS.finditer(source.text))
    if not signs:
        return
    texts = [one for one in captures(raw, source, "texts") if one.name != "html_comment"]
    comments = {one.end: one.start for one in texts if one.name == "comment"}
    waiting = iter(texts)
    text = next(waiting, None)
    for sign in signs:
        at = sign.start()
        while text is not None and text.end <= at:
            text = next(waiting, None)
        is_code = text is None or at < text.start
        if is_code and (sign[0] == _OPENING or _is_first(source.text, at, comments)):
            yield Problem(at, _MESSAGES[sign[0]])


def _is_first(text: str, at: int, comments: dict[int, int]) -> bool:
    """Whether only blanks and comments (starts by their ends) are between a line's beginning and a
    place; a comment may have that beginning inside."""
    while at > 0 and not LINE_END.match(text, at - 1):
        start = comments.get(at)
        if start is not None:
            if LINE_END.search(text, start, at):
                return True
            at = start
        elif text[at - 1].isspace() or text[at - 1] == _BYTE_ORDER_MARK:
            at -= 1
        else:
            return False
    return True
