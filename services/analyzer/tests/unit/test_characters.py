"""Characters that are invisible, that reorder others, or that look like others."""

import pytest

from pml_analysis.analysis import analyze
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.programs import (
    TOOLS,
    analysed,
    complaints,
    rejected,
    tool,
    warnings,
)

IN_CODE = {
    "a zero-width space": (
        "const a\u200b = 1;",
        "1:8 U+200B ZERO WIDTH SPACE is invisible in the code",
    ),
    "a zero-width joiner in a name": (
        "const a\u200db = 1;",
        "1:8 U+200D ZERO WIDTH JOINER is invisible",
    ),
    "a filler as a name": (
        "const \u3164 = 1;",
        "1:7 U+3164 HANGUL FILLER is invisible in the code",
    ),
    "a variation selector in a name": ("mcp.f\ufe0fs.read({});", "1:6 U+FE0F VARIATION SELECTOR"),
    "a tag": ("return 1;\U000e0041", "1:10 U+E0041 TAG LATIN CAPITAL LETTER A is invisible"),
    "a byte order mark inside": ("return 1;\ufeff", "1:10 U+FEFF ZERO WIDTH NO-BREAK SPACE"),
    "a control character": (
        "return\x7f 1;",
        "1:7 U+007F CONTROL CHARACTER is invisible in the code",
    ),
    "an override in code": ("return \u202e1;", "1:8 U+202E RIGHT-TO-LEFT OVERRIDE is invisible"),
    "a line separator": ("return 1;\u2028f();", "1:10 U+2028 LINE SEPARATOR ends this line"),
    "a separator that ends a comment": ("// a\u2029mcp.fs.read({});", "1:5 U+2029 PARAGRAPH"),
}
UNCLOSED = {
    "in a comment": (
        "/* \u202e } \u2066if (a)\u2069 \u2066 */ return 1;",
        "1:4 U+202E RIGHT-TO-LEFT OVERRIDE makes the text after it look different: remove",
    ),
    "in a line comment": (
        "return 1; // \u2067",
        "1:14 U+2067 RIGHT-TO-LEFT ISOLATE makes the text",
    ),
    "in a text": ("return 'a\u202e';", "1:10 U+202E RIGHT-TO-LEFT OVERRIDE makes the text"),
    "with its remedy": ("return '\u2066';", "1:9 U+2066 LEFT-TO-RIGHT ISOLATE makes the text"),
    "over a substitution": (
        "return `\u202b${args.a}\u202c`;",
        "1:9 U+202B RIGHT-TO-LEFT EMBEDDING",
    ),
    "over a line": ("return `\u202b\n\u202c`;", "1:9 U+202B RIGHT-TO-LEFT EMBEDDING makes"),
    "closed by another end": ("return '\u2066\u202c';", "1:9 U+2066 LEFT-TO-RIGHT ISOLATE makes"),
    "closed by nothing before": ("return '\u2069\u2066';", "1:10 U+2066 LEFT-TO-RIGHT ISOLATE"),
    "closed once of twice": ("return '\u202a\u202a\u202c';", "1:9 U+202A LEFT-TO-RIGHT EMBEDDING"),
    "in a regular expression": ("return /\u202e/;", "1:9 U+202E RIGHT-TO-LEFT OVERRIDE makes"),
}
REFUSED = {
    f"{group}: {name}": case
    for group, cases in {"in code": IN_CODE, "unclosed": UNCLOSED}.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("code", "complaint"), REFUSED.values(), ids=REFUSED)
def test_characters_that_make_code_look_other_than_it_is_are_refused(
    code: str, complaint: str
) -> None:
    told = complaints(code)
    assert any(line.startswith(complaint) for line in told), told


def test_they_are_named_as_the_cause_of_a_syntax_error() -> None:
    assert rejected("const a = 1\u2028const b = ;").kind == "syntax"
    assert complaints("const a\u200b b = 1;")[0].startswith("1:8 U+200B ZERO WIDTH SPACE")


UNSEEN = {
    "an override that ends": (
        "return '\u202eabc\u202c';",
        "1:9 U+202E RIGHT-TO-LEFT OVERRIDE changes the order in which this is shown: "
        "write \\u202e if it is meant.",
    ),
    "an embedding in an isolate": ("return '\u2066\u202aa\u2069';", "1:9 U+2066 LEFT-TO-RIGHT"),
    "an isolate in a comment": ("/* \u2066a\u2069 */ return 1;", "1:4 U+2066 LEFT-TO-RIGHT"),
    "a zero-width space": ("return 'a\u200bb';", "1:10 U+200B ZERO WIDTH SPACE cannot be seen"),
    "a control character": ("return 'a\x1b[1m';", "1:10 U+001B CONTROL CHARACTER cannot be seen"),
    "a joiner between ASCII": ("return 'a\u200db';", "1:10 U+200D ZERO WIDTH JOINER cannot be"),
    "text in tags": (
        "return '\U000e0041\U000e0042';",
        "1:9 U+E0041 TAG LATIN CAPITAL LETTER A cannot be seen here (2 such characters): "
        "write \\u{e0041} if it is meant.",
    ),
    "bytes in variation selectors": ("return 'a\ufe01\ufe02';", "1:10 U+FE01 VARIATION SELECTOR-2"),
    "text in a comment": ("// \U000e0041\U000e0041\U000e0041\U000e0041\nreturn 1;", "1:4 U+E0041"),
    "around an escape": ("return '\u202ea\\n\u202c';", "1:9 U+202E RIGHT-TO-LEFT OVERRIDE changes"),
    "a line separator in a text": ("return 'a\u2028b';", "1:10 U+2028 LINE SEPARATOR cannot be"),
}


@pytest.mark.parametrize(("code", "warning"), UNSEEN.values(), ids=UNSEEN)
def test_what_a_reader_does_not_see_is_a_warning(code: str, warning: str) -> None:
    (told,) = warnings(code)
    assert told.startswith(warning)


HONEST = {
    "a byte order mark": "\ufeffreturn 1;",
    "lines of all sorts": "const a = 1;\r\nconst b = 2;\rconst c = 3\rreturn [a,\tb,\nc];",
    "families": "return '\U0001f469\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f\u200d\U0001f525';",
    "keycaps": "return '1\ufe0f\u20e3 a\ufe0f';",
    "flags": "return '\U0001f3f4\U000e0067\U000e0062\U000e007f';",
    "Persian": "return '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645\u200e';",
    "letters of many scripts": "const \u0438\u043c = '\u540d\u524d'; return \u0438\u043c;",
    "spaces in a comment": "/* a\u200bb \u00ad \x1b */ return 1;",
    "escapes": "return '\\u202e\\u200b\\x1b';",
}


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST)
def test_honest_characters_are_left_alone(code: str) -> None:
    assert warnings(code) == []


NO_NAMES = {
    "curly quotes": (
        "return \u201chello\u201d;",
        '1:8 U+201C LEFT DOUBLE QUOTATION MARK is not allowed in a name: write ".',
    ),
    "a year sign": ("const \u0bf5 = 1;", "1:7 U+0BF5 TAMIL YEAR SIGN is not allowed in a name"),
    "a digit first": ("const \u0663 = 1;", "1:7 U+0663 ARABIC-INDIC DIGIT THREE is not allowed"),
    "a tilde": ("const \u2e2f = 1;", "1:7 U+2E2F VERTICAL TILDE is not allowed in a name"),
    "single curly quotes": ("return \u2018a\u2019;", "1:8 U+2018 LEFT SINGLE QUOTATION MARK"),
    "full-width parentheses": (
        "f\uff081\uff09;",
        "1:1 U+FF08 FULLWIDTH LEFT PARENTHESIS is not allowed in a name: write (.",
    ),
    "a dash": ("return a\u2013b;", "1:8 U+2013 EN DASH is not allowed in a name: write -."),
    "an arrow": (
        "return a\u2192b;",
        "1:8 U+2192 RIGHTWARDS ARROW is not allowed in a name: remove it.",
    ),
    "a picture as a property": ("return args.\U0001f389;", "1:13 U+1F389 PARTY POPPER is not"),
    "an escaped space": ("const a\\u0020b = 1;", "1:7 a\\u0020b is no name: its escapes decode"),
    "an escaped word": ("const \\u0069f = 1;", "1:7 if is a word of the language"),
    "a word of modules": ("const await = 1;", "1:7 await is a word of the language"),
    "a word of strict code": ("function f(package) {}", "1:12 package is a word of the language"),
    "eval as a name": ("function f(eval) {}", "1:12 eval cannot be a name of yours"),
    "arguments as a name": ("let arguments = 1;", "1:5 arguments cannot be a name of yours"),
    "a private name": ("class A { #a\u2192b; }", "1:11 U+2192 RIGHTWARDS ARROW is not allowed"),
}


@pytest.mark.parametrize(("code", "complaint"), NO_NAMES.values(), ids=NO_NAMES)
def test_what_is_no_name_is_refused(code: str, complaint: str) -> None:
    told = complaints(code)
    assert told[0].startswith(complaint), told


NAMES = {
    "letters": "const \u00f1 = 1, \u5909\u6570 = 2, $a = 3, _b = 4; return \u00f1 + \u5909\u6570;",
    "words as keys": "return { default: 1, class: 2, await: 3 }.default;",
    "words of some places": "const of = 1, get = 2, async = 3, type = 4; return of + get;",
    "words in labels": "a: for (;;) break a;",
    "of the newest Unicode": "const \U0002ebf0 = 1, \U00010d50 = 2; return \U00010d50;",
    "marks and digits": "const a\u30fb\u0663\u0301\u203f = 1, \u309b = 2; return \u309b;",
}


@pytest.mark.parametrize("code", NAMES.values(), ids=NAMES)
def test_names_that_javascript_takes_are_taken(code: str) -> None:
    assert warnings(code) == []


LOOK_ALIKES = {
    "a server": (
        "mcp.f\u0455.read({ path: 'a' });",
        '1:1 There is no server "f\u0455": it has U+0455 CYRILLIC SMALL LETTER DZE, not s. '
        "Did you mean fs:read?",
    ),
    "a tool": (
        "mcp.fs.r\u0435ad({ path: 'a' });",
        '1:1 "fs" has no tool "r\u0435ad": it has U+0435 CYRILLIC SMALL LETTER IE, not e. '
        "Did you mean fs:read?",
    ),
    "a tool by name": (
        "mcp.call('f\u0455:read', { path: 'a' });",
        '1:1 There is no server "f\u0455": it has U+0455',
    ),
    "a server in brackets": (
        "mcp['f\u0455'].read({});",
        '1:1 There is no server "f\u0455": it has',
    ),
    "a server destructured": (
        "const { f\u0455 } = mcp; f\u0455.read({});",
        '1:21 There is no server "f\u0455": it has U+0455',
    ),
    "a full-width tool": (
        "mcp.fs.\uff52ead({});",
        '1:1 "fs" has no tool "\uff52ead": it has U+FF52 FULLWIDTH LATIN SMALL LETTER R, not r.',
    ),
    "what nobody sees": (
        "mcp.call('fs:re\u200bad', {});",
        '1:1 "fs" has no tool "re\\u200bad": it has U+200B ZERO WIDTH SPACE, which is invisible.',
    ),
    "mcp": (
        "mc\u0440.fs.read({});",
        "1:1 mc\u0440 is not mcp: it has U+0440 CYRILLIC SMALL LETTER ER, not p.",
    ),
    "capabilities": ("c\u0430pabilities.a();", "1:1 c\u0430pabilities is not capabilities: it has"),
    "mcp declared": ("const m\u0441p = {};", "1:7 m\u0441p is not mcp: it has U+0441"),
}


@pytest.mark.parametrize(("code", "complaint"), LOOK_ALIKES.values(), ids=LOOK_ALIKES)
def test_a_name_that_passes_for_a_tool_is_told_by_its_character(code: str, complaint: str) -> None:
    told = complaints(code)
    assert told[0].startswith(complaint), told


def test_an_unknown_name_of_another_script_is_no_look_alike() -> None:
    assert complaints("mcp.\u540d.read({});") == [
        '1:1 There is no server "\u540d". Did you mean fs:read?'
    ]


def test_a_connected_tool_that_passes_for_another_is_a_warning() -> None:
    tools = [*TOOLS, tool("f\u0455:read"), tool("\u540d:read")]
    found = analyze("mcp.f\u0455.read(); mcp.\u540d.read();", tools=tools, policy=Policy())
    (told,) = [one.message for one in found.diagnostics if "looks like" in one.message]
    assert told.startswith("f\u0455:read is not what it looks like: f\u0455 has U+0455 CYRILLIC")


DISGUISED = {
    "another name": (
        "const p\u0430th = 1; return p\u0430th + path;",
        "1:7 p\u0430th is not path: it has U+0430 CYRILLIC SMALL LETTER A, not a.",
    ),
    "args": ("return \u0430rgs.x;", "1:8 \u0430rgs is not args: it has U+0430"),
    "a built-in": ("const M\u0430th = 1;", "1:7 M\u0430th is not Math: it has U+0430"),
    "escapes": (
        "const \\u0061b = 1;",
        "1:7 This name is ab, written with escapes: write it out.",
    ),
}


@pytest.mark.parametrize(("code", "warning"), DISGUISED.values(), ids=DISGUISED)
def test_a_name_that_passes_for_another_is_a_warning(code: str, warning: str) -> None:
    assert warnings(code)[0].startswith(warning)


def test_names_of_other_scripts_are_left_alone() -> None:
    greek = "const \u03b1 = 1, a = 2, \u03c3_1 = 3; return \u03b1 + a + \u03c3_1;"
    assert warnings(greek) == []
    assert warnings("const \u0441\u043e\u0440 = 1; return \u0441\u043e\u0440;") == []
    assert analysed("return { '\u0430rgs': args.a };")
