"""The text of a generated program: which names its locals have, and how it is laid out."""

from typing import Final

NAMES: Final = 20
"""How many local names a program may have."""

_PLAIN: Final = "abcdefghijklmnopqrst"


def render(program: str, *, names: str = _PLAIN, layout: str = " ") -> str:
    """The program with these local names and this layout."""
    for number, name in enumerate(names):
        program = program.replace(f"@{number}@", f"{name}_")
    return program.replace("~", layout)
