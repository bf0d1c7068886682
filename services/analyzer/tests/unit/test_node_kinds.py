"""The table of node kinds against the installed grammar."""

import pytest

from pml_analysis.syntax.node_kinds import CASTS, LEAVES, ROWS, Role
from pml_analysis.syntax.parser import language, parse, view
from pml_analysis.syntax.source import Source
from pml_analysis.syntax.tree import Node
from services.analyzer.tests.patterns import patterns
from services.analyzer.tests.support.programs import complaints

REFUSED = {
    "decorator": "@d class C {}",
    "export_statement": "export { a };",
    "hash_bang_line": "#!/usr/bin/env deno\nreturn 1;",
    "import": "await import('a');",
    "import_alias": "import a = b.c;",
    "import_statement": "import a, { b as c } from 'd';",
    "internal_module": "namespace N {}",
    "module": "module 'm' {}",
    "with_statement": "with (a) {}",
}
SAMPLES = (
    "abstract class A<T> extends B<T> implements I { abstract m(): void; private override p = 1;"
    " [k: string]: any; static { this.q(); } #r = super.m(); get s() { return new.target; }"
    " n(): void; n() {} }",
    "class C { accessor x = 1; } const D = class {};",
    "enum E { A = 1, B } interface I {} type T = string; declare const d: number;",
    "function f(a: number, b?: string, ...c: any[]): asserts a is number { debugger; }",
    "function g(this: T): void; function* h() { yield 1; } const k = function* () {};",
    "function u(x: unknown): x is string { return true; }",
    "class M { a?: number; b!: number }",
    "l: for (const [a, , b = 1, ...c] of d) { continue l; } do { break; } while (null);",
    "const { a, b: c, d = 1, ...e } = f; ({ g, [h]: i, ...j }); x ||= y; x++; x, y;",
    "for (let i = 0; ; ) ; var v = 0x1; delete a.b; typeof /a/g; `a${b}\\n`; a?.b?.[c]?.(d);",
    "switch (a) { case 1: break; default: throw undefined; } while (false) {}",
    "try { a; } catch (e) { } finally { } if (a) b; else c; (async x => await x)(y);",
    "a as string; a satisfies T; <T>a; a!; f<T>; new C(); a ? b : c; -a; !true; 'b\\n';",
    "function o({ a }: T = {}, [b]: U = []) { [a = 1] = b; } const p = { m() { return this; } };",
)


def kinds_in(code: str) -> set[str]:
    """The kinds of a program's nodes, the types of casts aside."""
    source = Source(code)
    return {
        node.kind
        for node in view(parse(source), source, nesting=100).nodes
        if not is_cast_type(node)
    }


def is_cast_type(node: Node) -> bool:
    above = node.parent
    return above is not None and above.kind in CASTS and above.children[0] is not node


def in_role(*roles: Role) -> set[str]:
    return {kind.name for kind in ROWS if kind.role in roles}


def test_every_named_kind_of_the_grammar_is_classified_once() -> None:
    grammar = language()
    named = {
        grammar.node_kind_for_id(number)
        for number in range(grammar.node_kind_count)
        if grammar.node_kind_is_named(number)
    }
    names = [kind.name for kind in ROWS]

    assert named - set(names) == set(), "unclassified: handle or refuse them"
    assert set(names) - named == set(), "not in this grammar"
    assert len(names) == len(set(names))


def test_there_is_a_program_with_each_refused_kind() -> None:
    assert set(REFUSED) == in_role(Role.REFUSED)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refused_kind_is_in_the_tree_and_rejects_the_program(kind: str) -> None:
    assert kind in kinds_in(REFUSED[kind])
    assert complaints(REFUSED[kind])


def test_the_tree_has_the_kinds_that_passes_read_and_no_others() -> None:
    texts = [*SAMPLES, *(pattern.code for pattern in patterns())]

    found = set[str]().union(*map(kinds_in, texts))

    assert in_role(Role.READ, Role.LEAF, Role.ERASED) - found == set()
    assert found & in_role(Role.DROPPED, Role.INNER) == set()


def test_nothing_is_inside_a_leaf() -> None:
    for code in SAMPLES:
        source = Source(code)
        for node in view(parse(source), source, nesting=100).nodes:
            assert node.kind not in LEAVES or not node.children
