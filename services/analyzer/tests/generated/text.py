"""The text of a generated program: the names of its locals, and its layout."""

import re
from typing import Final

NAMES: Final = 20
"""Number of local names that a program may have."""

_PLAIN: Final = "abcdefghijklmnopqrst"
_AT_THE_END: Final = re.compile(r"§(?=~*\})")


def render(program: str, *, names: str = _PLAIN, layout: str = " ", semicolons: bool = True) -> str:
    """Return the program with these local names and this layout; line ends may end statements
    too."""
    for number, name in enumerate(names):
        program = program.replace(f"@{number}@", f"{name}_")
    if not semicolons:
        program = _AT_THE_END.sub("", program)
    return program.replace("§", ";" if semicolons else "\n").replace("~", layout)
