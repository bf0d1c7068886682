"""From places in the instrumented text back to the author's (its lines are the same)."""

import re

_TOKENS = re.compile(
    r"""(?P<open>__pml\.(?:at|decide)\("[^"]*",[ ])
    | (?P<skip>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | //[^\n]* | /\*.*?\*/)
    | (?P<paren>[()])""",
    re.VERBOSE | re.DOTALL,
)
_BINDINGS = re.compile(r"(?:const (?:params|input|\{ [\w$, ]+ \}) = (?:args|context); )+")


def author_column(instrumented: str, line: int, column: int) -> int:
    """The author's column of a place in the instrumented text; all count from 1.

    Insertions are known by their look: an author who begins with the very bindings that the
    analyzer adds is shown a column too small on that line, and a lone parenthesis in a regular
    expression or a template can put the answer off by one.
    """
    lines = instrumented.split("\n")
    if not 1 <= line <= len(lines):
        return column
    start = sum(len(text) + 1 for text in lines[: line - 1])
    place = start + column - 1
    removed = sum(
        min(end, place) - max(begin, start)
        for begin, end in _insertions(instrumented)
        if end > start and begin < place
    )
    return max(1, column - removed)


def _insertions(text: str) -> list[tuple[int, int]]:
    """Spans that the analyzer put in."""
    bindings = _BINDINGS.match(text)
    spans = [bindings.span()] if bindings else []
    parens: list[bool] = []
    for token in _TOKENS.finditer(text):
        if token["open"]:
            spans.append(token.span())
            parens.append(True)
        elif token["paren"] == "(":
            parens.append(False)
        elif token["paren"] == ")" and parens and parens.pop():
            spans.append(token.span())
    return spans
