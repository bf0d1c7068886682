"""Modules built from programs for the type checker, and findings mapped back to the program."""

import pytest

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.check_results import with_types
from pml_analysis.typing.type_check import Finding, checked_module, type_errors, unchecked
from services.analyzer.tests.support.programs import analysed, rejected

CODE = "const a = 1;\n\n/* 😀é */ const b: string = a;\u2028x"


def at(line: int, column: int, message: str = "wrong", code: int = 2322) -> Finding:
    return Finding(line, column, code, message)


def told(code: str, prefix: int, *findings: Finding) -> list[str]:
    return [f"{d.line}:{d.column} {d.message}" for d in type_errors(code, prefix, findings)]


def test_a_program_becomes_the_body_of_a_function_on_the_lines_where_it_stood() -> None:
    module = checked_module("return path;\n", ["path", "n", "x"], "abc.d.ts")
    first, second, *rest = module.text.split("\n")
    assert first.startswith("import { mcp, capabilities, ")
    assert first.endswith(
        '} from "./abc.d.ts"; export default async (path: any, n: any, x: any) => {{ return path;'
    )
    assert (second, rest) == ("", ["}}"])
    assert first.encode("utf-16-le")[2 * module.prefix :].decode("utf-16-le") == "return path;"


def test_findings_are_told_where_the_author_counts_them() -> None:
    findings = [at(0, 106), at(2, 17), at(3, 0)]
    assert told(CODE, 100, *findings) == [
        "1:7 wrong (TypeScript 2322)",
        "3:17 wrong (TypeScript 2322)",  # 😀 is two units and one column
        "4:1 wrong (TypeScript 2322)",
    ]
    assert type_errors(CODE, 100, findings)[1].source_line == "/* 😀é */ const b: string = a;"


def test_findings_are_told_in_source_order() -> None:
    assert [line[:3] for line in told(CODE, 0, at(2, 3), at(0, 3), at(0, 1))] == [
        "1:2",
        "1:4",
        "3:4",
    ]


def test_what_stands_before_or_behind_the_program_is_not_told() -> None:
    assert told(CODE, 100, at(0, 99), at(4, 0)) == []


def test_a_column_behind_the_line_is_its_end() -> None:
    assert told("ab", 0, at(0, 9)) == ["1:3 wrong (TypeScript 2322)"]
    assert told("é", 0, at(0, 9)) == ["1:2 wrong (TypeScript 2322)"]


def test_a_type_that_nobody_wrote_down_is_no_error() -> None:
    assert told(CODE, 0, at(0, 0, code=7006), at(0, 0, code=7053)) == []


def test_long_messages_and_many_errors_are_cut() -> None:
    findings = [at(0, 0, "x" * 5_000)] * 50
    found = type_errors(CODE, 0, findings)
    assert len(found) == 20
    assert len(found[0].message) < 700


@pytest.fixture
def analysis() -> Analysis:
    return analysed("return 1;")


ERROR = type_errors("return 1;", 0, [at(0, 7)])[0]


def test_errors_are_warnings_where_they_do_not_reject(analysis: Analysis) -> None:
    found = with_types(analysis, [ERROR], reject=False)
    assert isinstance(found, Analysis)
    assert [(d.severity, d.message, d.column) for d in found.diagnostics] == [
        ("warning", "wrong (TypeScript 2322)", 8)
    ]
    assert found.structure == analysis.structure


def test_errors_reject_where_they_should(analysis: Analysis) -> None:
    found = with_types(analysis, [ERROR], reject=True)
    assert isinstance(found, Rejection)
    assert found.diagnostics == (ERROR,)
    assert (found.kind, found.missing_tools) == ("rejected", False)


@pytest.mark.parametrize("reject", [True, False])
def test_what_was_not_checked_rejects_nothing(analysis: Analysis, reject: bool) -> None:
    found = with_types(analysis, [unchecked("no time")], reject=reject)
    assert isinstance(found, Analysis)
    assert [(d.severity, d.message) for d in found.diagnostics] == [
        ("warning", "Types were not checked: no time.")
    ]


def test_an_analysis_tells_the_names_that_the_caller_gives_values() -> None:
    assert analysed("return path + params.a + input.b + args.c;").free == (
        "path",
        "input",
        "params",
    )


@pytest.mark.parametrize(
    "code",
    [
        "import a from './a.ts';",
        "import a = require('a');",
        "const a = await import('./a.ts');",
        "type A = import('./a.ts').A;",
        "type A = typeof import('./a.json');",
        "type A = typeof import('./a.json', { with: { type: 'json' } });",
        "const a: import('./a.ts').A = 1;",
        "function f(a: import('./a.ts').A): import('./a.ts').B {}",
        "f<import('./a.ts').A>(1); function f<T>(a: T) {}",
        "const a = 1 as import('./a.ts').A;",
        "export * from './a.ts';",
        "declare module './a.ts' {}",
    ],
)
def test_no_program_that_reads_other_files_gets_as_far_as_a_type_check(code: str) -> None:
    assert rejected(code).diagnostics
