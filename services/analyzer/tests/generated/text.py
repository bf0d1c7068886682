"""The text of a generated program: which names its locals have, and how it is laid out."""

import re
from typing import Final

NAMES: Final = 20
"""How many local names a program may have."""

_PLAIN: Final = "abcdefghijklmnopqrst"
_AT_THE_END: Final = re.compile(r"§(?=~*\})")


def render(program: str, *, names: str = _PLAIN, layout: str = " ", semicolons: bool = True) -> str:
    """The program with these local names and this layout; line ends may end statements too."""
    for number, name in enumerate(names):
        program = program.replace(f"@{number}@", f"{name}_")
    if not semicolons:
        program = _AT_THE_END.sub("", program)
    return program.replace("§", ";" if semicolons else "\n").replace("~", layout)
