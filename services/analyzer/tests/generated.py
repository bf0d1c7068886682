"""Programs made up by hypothesis. `@1@` stands for a local name, `~` for layout."""

from hypothesis import strategies as st

TOOLS = ("fs:read", "fs:stat", "fs:list", "git:status")

_NAMES = st.integers(0, 5).map(lambda number: f"@{number}@")
_CALLEES = st.sampled_from(TOOLS).map(lambda tool: "mcp." + tool.replace(":", "."))
_LEAVES = st.one_of(
    _NAMES, st.sampled_from(["1", "'x'", "null", "args.a", "free", "`t${1}`", "[]", "{}"])
)


def _expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two, three = st.tuples(inner, inner), st.tuples(inner, inner, inner)
    return st.one_of(
        st.tuples(_CALLEES, inner).map(lambda p: f"(await~{p[0]}({{~v:~{p[1]}~}}))"),
        st.tuples(_CALLEES, inner).map(lambda p: f"{p[0]}({{~...({p[1]})~}})"),
        two.map(lambda p: f"[{p[0]},~...({p[1]})]"),
        two.map(lambda p: f"({{~a:~{p[0]},~[({p[1]})]:~1~}})"),
        two.map(lambda p: f"({p[0]}~&&~{p[1]})"),
        two.map(lambda p: f"({p[0]}~+~{p[1]})"),
        two.map(lambda p: f"`${{{p[0]}}}${{{p[1]}}}`"),
        three.map(lambda p: f"({p[0]}~?~{p[1]}~:~{p[2]})"),
        two.map(lambda p: f"(await~(async~(@6@)~=>~{p[0]})({p[1]}))"),
        inner.map(lambda e: f"({e})?.field"),
    )


EXPRESSIONS = st.recursive(_LEAVES, _expressions, max_leaves=6)


def _statements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    block = st.lists(inner, max_size=3).map(lambda parts: "{~" + "~".join(parts) + "~}")
    return st.one_of(
        st.tuples(EXPRESSIONS, block, block).map(lambda p: f"if~({p[0]})~{p[1]}~else~{p[2]}"),
        st.tuples(EXPRESSIONS, block).map(lambda p: f"if~({p[0]})~{p[1]}"),
        st.tuples(EXPRESSIONS, block).map(lambda p: f"for~(const @7@ of~{p[0]})~{p[1]}"),
        st.tuples(EXPRESSIONS, block).map(lambda p: f"while~({p[0]})~{{~{p[1]}~break;~}}"),
        st.tuples(block, block).map(lambda p: f"try~{p[0]}~catch~(@8@)~{p[1]}"),
        st.tuples(block, block).map(lambda p: f"try~{p[0]}~finally~{p[1]}"),
        st.tuples(EXPRESSIONS, block, block).map(
            lambda p: f"switch~({p[0]})~{{~case 1:~{p[1]}~default:~{p[2]}~}}"
        ),
        block.map(lambda body: f"{{~async function @9@(@6@)~{body}~await @9@(1);~}}"),
    )


_SIMPLE = st.one_of(
    EXPRESSIONS.map(lambda e: f"@0@~=~{e};"),
    EXPRESSIONS.map(lambda e: f"await~({e});"),
    EXPRESSIONS.map(lambda e: f"{{~const~[@1@,~{{~k:~@2@~=~1~}}]~=~{e};~}}"),
    EXPRESSIONS.map(lambda e: f"if~(@3@)~return {e};"),
)
_BODY = st.lists(st.recursive(_SIMPLE, _statements, max_leaves=5), min_size=1, max_size=5)

PROGRAMS = _BODY.map(
    lambda body: "let @0@,~@1@,~@2@,~@3@,~@4@,~@5@;~" + "~".join(body) + "~return @0@;"
)


def render(program: str, *, names: str = "abcdefghij", layout: str = " ") -> str:
    """The program with these ten local names and this layout."""
    for number, name in enumerate(names):
        program = program.replace(f"@{number}@", f"{name}_")
    return program.replace("~", layout)
