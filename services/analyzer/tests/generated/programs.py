"""Whole programs."""

from hypothesis import strategies as st

from services.analyzer.tests.generated.choices import Scope
from services.analyzer.tests.generated.expressions import BOX
from services.analyzer.tests.generated.statements import Statements

FIRST = "await~mcp.fs.list({~v:~0~})§"
"""A call that every program begins with: a structure does not distinguish its beginning from
functions that may not run, where one comes first."""

_LETS = ("@0@", "@1@", "@2@", "@3@")
_HEAD = f"let @0@~=~1,~@1@,~@2@~=~'s',~@3@~=~[0]§~const {BOX}~=~{{~q:~0~}}§"
_DYNAMIC = ("void mcp[args.s].read({})§", "void args.list.map(mcp.fs.stat)§")


def program(choices: bytes, *, dynamic: bool = True) -> str:
    """Return the program of these choices; `dynamic`: some calls are known only at run time."""
    writer = Statements(choices)
    scope = Scope(names=_LETS, lets=_LETS)
    parts = [_HEAD, FIRST]
    if dynamic and writer.one_in(30):
        parts.append(writer.among(_DYNAMIC))
    parts.append(writer.lines(scope, ending=True, least=2))
    return "~".join(parts)


CHOICES = st.binary(min_size=100, max_size=500)
"""Choices of programs."""

PROGRAMS = CHOICES.map(lambda choices: program(choices, dynamic=False))
"""Programs whose calls are all known statically."""
