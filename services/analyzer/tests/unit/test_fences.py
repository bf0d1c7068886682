"""Markdown fences round programs."""

import pytest

from pml_analysis.analysis import Rejection, analyze
from pml_analysis.text.fences import PROSE_TAKEN_OFF, TAKEN_OFF
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.programs import (
    TOOLS,
    analysed,
    complaints,
    submitted,
    submitted_complaints,
    task,
)

CODE = 'const file = await mcp.fs.read({ path: "a" });\nreturn file;'
PROSE = "Here's a program that calls `mcp.fs.read()`; it's short (see below):"

FENCED = {
    "backticks": f"```\n{CODE}\n```",
    "a language": f"```typescript\n{CODE}\n```\n",
    "a language apart": f"``` ts\n{CODE}\n```",
    "tildes": f"~~~\n{CODE}\n~~~",
    "tildes and a language": f"~~~js\n{CODE}\n~~~",
    "more than three": f"`````ts\n{CODE}\n`````",
    "a longer end": f"```ts\n{CODE}\n`````",
    "carriage returns": f"```ts\n{CODE}\n```\n".replace("\n", "\r\n"),
    "a semicolon": f"```ts\n{CODE}\n```;",
    "empty lines around": f"\n\n```ts\n\n{CODE}\n\n```\n\n",
    "a byte order mark": f"\ufeff```ts\n{CODE}\n```",
    "indented": f"  ```ts\n{CODE}\n  ```",
    "without an end": f"```ts\n{CODE}",
}
WITH_PROSE = {
    "before": f"{PROSE}\n\n```ts\n{CODE}\n```",
    "after": f"```ts\n{CODE}\n```\nThis reads the file.",
    "around": f"Program\n```\n{CODE}\n```\nDone",
    "around tildes": f"Program:\n~~~\n{CODE}\n~~~\nDone",
    "much": f"{PROSE}\n" * 50 + f"```ts\n{CODE}\n```\n" + f"{PROSE}\n" * 50,
    "not of ASCII": f"Größe des Textes: ☃ 😀\n```ts\n{CODE}\n```",
}
CONTAINING = {
    "in a comment": f"```ts\n/*\n```\nx\n```\n*/\n{CODE}\n```",
    "another kind in a comment": f"```ts\n/*\n~~~\n*/\n{CODE}\n```",
    "in a template": f"```ts\nconst text = `\n~~~\nx\n~~~\n`;\n{CODE}\n```",
    "longer outside": f"````ts\n/*\n```\n*/\n{CODE}\n````",
}
UNTOUCHED = {
    "a template": "const a = `x`;\nreturn a;",
    "empty templates": "return [``, ``, ``].join('```');",
    "a fence in a string": "return '```ts';",
    "a fence in a template": "return `\n~~~ts\nreturn 1;\n~~~\n`;",
    "escaped backticks": "return `\n\\`\\`\\`ts\nreturn 1;\n\\`\\`\\`\n`;",
    "a fence in a comment": "/*\n```ts\nreturn 1;\n```\n*/\nreturn 2;",
    "a fence in line comments": "// ```ts\n// return 1;\n// ```\nreturn 2;",
    "signs": "return ~~~args.n;",
}
REFUSED = {
    "two blocks": (
        f"```ts\n{CODE}\n```\n\n```ts\nreturn 2;\n```",
        "1:1 This Markdown fence is not",
    ),
    "two blocks with prose": (f"One:\n```\nreturn 1;\n```\nTwo:\n```\n{CODE}\n```", "2:1 "),
    "two kinds": ("```\nreturn 1;\n```\n~~~\nreturn 2;\n~~~", "1:1 This Markdown fence is not"),
    "never closed": ("```ts\nreturn (1", "1:1 This Markdown fence is never closed"),
    "only closed": ("return 1;\n```", "2:1 A Markdown fence begins after code"),
    "closed on a line of code": ("```ts\nreturn 1;```", "1:1 This Markdown fence is never closed"),
    "on one line": ("```return 1;```", "1:1 A Markdown fence has code on its line"),
    "code on the first line": ("```const a = 1;\nreturn a;\n```", "1:1 A Markdown fence has code"),
    "after code": ("const a = 1;\n```ts\nreturn a;\n```", "2:1 A Markdown fence begins after code"),
    "before code": ("```ts\nconst a = 1;\n```\nawait go(a);", "1:1 This Markdown fence is not the"),
    "in a substitution": ("return `${\n```ts\n1\n```}`;", "2:1 A Markdown fence begins after"),
}


@pytest.mark.parametrize("text", FENCED.values(), ids=FENCED)
def test_a_fence_is_taken_off_and_said(text: str) -> None:
    outcome = submitted(text)
    assert outcome.notices == (TAKEN_OFF,)
    assert outcome.code_hash == analysed(CODE).code_hash
    assert outcome.code.strip("\r\n").replace("\r", "") == CODE


@pytest.mark.parametrize("text", WITH_PROSE.values(), ids=WITH_PROSE)
def test_prose_beside_the_fence_is_taken_off_too(text: str) -> None:
    outcome = submitted(text)
    assert outcome.notices == (PROSE_TAKEN_OFF,)
    assert outcome.code.strip() == CODE


@pytest.mark.parametrize("text", CONTAINING.values(), ids=CONTAINING)
def test_fences_in_the_texts_and_comments_of_the_program_stay(text: str) -> None:
    outcome = submitted(text)
    assert outcome.notices == (TAKEN_OFF,)
    assert outcome.code.strip("\n") == text.split("\n", 1)[1].rsplit("\n", 1)[0]


@pytest.mark.parametrize("text", [*FENCED.values(), *WITH_PROSE.values(), *CONTAINING.values()])
def test_calls_are_where_the_author_wrote_them(text: str) -> None:
    outcome = submitted(text)
    lines = text.splitlines()
    (line,) = [number for number, each in enumerate(lines, 1) if "await mcp.fs.read({" in each]
    found = task(outcome, "n1")
    assert (found.line, found.column) == (line, lines[line - 1].index("mcp.fs") + 1)
    before = outcome.instrumented.split("mcp.fs")[0]
    assert before.count("\n") == line - 1


@pytest.mark.parametrize("text", UNTOUCHED.values(), ids=UNTOUCHED)
def test_a_program_with_backticks_of_its_own_is_untouched(text: str) -> None:
    outcome = submitted(text)
    assert (outcome.code, outcome.notices) == (text, ())
    assert outcome == analysed(text)


@pytest.mark.parametrize(("text", "told"), REFUSED.values(), ids=REFUSED)
def test_any_other_fence_is_refused_as_one(text: str, told: str) -> None:
    (complaint,) = submitted_complaints(text)
    assert complaint.startswith(told)
    assert "Markdown fence" in complaint
    assert complaint.endswith("send the code of one program alone, without lines of ``` or ~~~.")


def test_a_refused_fence_is_an_error_of_syntax() -> None:
    outcome = analyze("```return 1;```", tools=TOOLS, policy=Policy(), submitted=True)
    assert isinstance(outcome, Rejection)
    assert outcome.kind == "syntax"


def test_errors_within_a_fence_are_where_the_author_wrote_them() -> None:
    assert submitted_complaints("It:\n```ts\nconst = 1;\n```") == ['3:7 Unexpected "=".']
    assert submitted_complaints("```ts\nawait mcp.fs.raed({});\n```")[0].startswith("2:7 ")
    assert submitted_complaints("```ts\n```")[0].startswith("1:1 The program is empty")


def test_errors_beside_a_comment_with_a_fence_are_those_of_the_program() -> None:
    text = "/*\n```ts\nreturn 1;\n```\n*/\nconst = 1;"
    assert submitted_complaints(text) == ['6:7 Unexpected "=".'] == complaints(text)


def test_a_fence_round_too_many_errors_is_taken_off_where_it_is_the_only_one() -> None:
    broken = "case 1:" * 2_000
    (complaint,) = submitted_complaints(f"```ts\n{broken}\n```")
    assert "too many syntax errors" in complaint
    (complaint,) = submitted_complaints(f"```ts\n{broken}\n```\n```\nreturn 1;\n```")
    assert "This Markdown fence is not the only one" in complaint


def test_a_stored_program_keeps_its_fence() -> None:
    assert analysed("```\nreturn 2;\n```").notices == ()


@pytest.mark.parametrize(
    "text",
    [
        f"return 1; // \n/*\n~~~{' ' * 4_000}!\n*/",
        f"return 1;\n{'`' * 4_000}\rx\n",
        f"```{' ' * 4_000}x y\nreturn 1;\n```{' ' * 4_000}x",
    ],
)
def test_a_line_that_is_nearly_a_fence_is_read_once(text: str) -> None:
    outcome = analyze(text, tools=(), policy=Policy(), submitted=True)
    assert outcome.diagnostics == () or isinstance(outcome, Rejection)  # and not after hours
