"""Pipelines: which results fit which parameters, and the program that joins them."""

import pytest

from pml_common.contracts.tool import JsonObject
from pml_registry.domain.pipelines import Misfit, Step, pipeline

TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "number"}
ANY: JsonObject = {}


def fields(required: bool = True, /, **properties: JsonObject) -> JsonObject:
    """An object's schema; its properties are all required, or none is."""
    needed = [*properties] if required else []
    return {"type": "object", "properties": {**properties}, "required": [*needed]}


def joined(gives: JsonObject, takes: JsonObject) -> str:
    """The argument of the second of two steps."""
    code = pipeline([Step("cap:a:b@1", ANY, gives), Step("cap:c:d@2", takes, ANY)]).code
    first, second, last = code.splitlines()
    assert first == 'const step1 = await mcp.call("cap:a:b@1", {});'
    assert last == "return step2;"
    start = 'const step2 = await mcp.call("cap:c:d@2", '
    assert second.startswith(start)
    return second.removeprefix(start).removesuffix(");")


def misfit(gives: JsonObject, takes: JsonObject) -> str:
    """Why two steps do not fit."""
    with pytest.raises(Misfit) as refused:
        joined(gives, takes)
    return str(refused.value)


def test_the_first_step_gets_the_arguments_by_name() -> None:
    takes = fields(path=TEXT, **{"max-size": NUMBER})
    steps = [Step("cap:a:b@1", takes, TEXT), Step("cap:c:d@1", fields(text=TEXT), ANY)]
    assert pipeline(steps).code.splitlines()[0] == (
        'const step1 = await mcp.call("cap:a:b@1", '
        '{ path: args.path, "max-size": args["max-size"] });'
    )


@pytest.mark.parametrize(
    ("gives", "takes", "argument"),
    [
        (fields(path=TEXT), fields(path=TEXT), "{ path: step1.path }"),
        (fields(path=TEXT, size=NUMBER), fields(path=TEXT), "{ path: step1.path }"),
        (fields(file_name=TEXT), fields(fileName=TEXT), "{ fileName: step1.file_name }"),
        (fields(content=TEXT), fields(json=TEXT), "{ json: step1.content }"),
        (
            fields(page=fields(url=TEXT)),
            fields(url=TEXT),
            "{ url: step1.page.url }",
        ),
        (fields(**{"a-b": TEXT}), fields(**{"a-b": TEXT}), '{ "a-b": step1["a-b"] }'),
        (TEXT, fields(path=TEXT), "{ path: step1 }"),
        (TEXT, fields(False, path=TEXT), "{ path: step1 }"),
        ({"type": "array", "items": TEXT}, fields(names={"type": "array"}), "{ names: step1 }"),
        (fields(path=TEXT), fields(path=ANY), "{ path: step1.path }"),
        (fields(path=ANY), fields(path=TEXT), "{ path: step1.path }"),
        (
            {"anyOf": [TEXT, {"type": "null"}]},
            {**fields(text=TEXT, mode=TEXT), "required": ["text"]},
            "{ text: step1 }",
        ),
        (fields(path=TEXT), fields(False, path=TEXT, limit=NUMBER), "{ path: step1.path }"),
    ],
)
def test_a_result_that_fits_is_passed_on(
    gives: JsonObject, takes: JsonObject, argument: str
) -> None:
    assert joined(gives, takes) == argument


@pytest.mark.parametrize(
    ("gives", "takes", "why"),
    [
        (
            fields(path=NUMBER),
            fields(path=TEXT),
            "cap:c:d@2 takes path as string, and cap:a:b@1 gives number",
        ),
        (
            fields(size=NUMBER),
            fields(path=TEXT, url=TEXT),
            "cap:c:d@2 needs path (string), which is no part of the result of cap:a:b@1, which has "
            "size (number); cap:c:d@2 needs url (string), which is no part of the result of "
            "cap:a:b@1, which has size (number)",
        ),
        (
            NUMBER,
            fields(path=TEXT, url=TEXT),
            "cap:c:d@2 needs path (string), which is no part of the result of cap:a:b@1, which is "
            "number; cap:c:d@2 needs url (string), which is no part of the result of cap:a:b@1, "
            "which is number",
        ),
        (
            fields(size=NUMBER),
            fields(False, path=TEXT),
            "cap:c:d@2 takes path (string), nothing of the result of cap:a:b@1, which has size "
            "(number)",
        ),
        (
            fields(user=fields(id=NUMBER, name=TEXT)),
            fields(user=fields(id=TEXT, mail=TEXT)),
            "cap:c:d@2 takes user.id as string, and cap:a:b@1 gives number; cap:c:d@2 takes "
            "user.mail as string, and cap:a:b@1 gives user without it",
        ),
        (
            {"type": "array", "items": NUMBER},
            fields(names={"type": "array", "items": TEXT}),
            "cap:c:d@2 takes names[] as string, and cap:a:b@1 gives number",
        ),
        (
            {"type": "array", "items": fields(url=TEXT)},
            fields(url=TEXT),
            "cap:c:d@2 takes url as string, and cap:a:b@1 gives array",
        ),
        (
            fields(user=fields(id=NUMBER)),
            fields(user={**fields(id=TEXT, mail=TEXT), "required": ["id"]}),
            "cap:c:d@2 takes user.id as string, and cap:a:b@1 gives number",
        ),
        (
            fields(pages={"type": "array", "items": fields(url=TEXT)}),
            fields(url=TEXT),
            "cap:c:d@2 needs url (string), which is no part of the result of cap:a:b@1, which has "
            "pages (array)",
        ),
        (
            {"type": "null"},
            fields(path=TEXT),
            "cap:a:b@1 returns nothing: cap:c:d@2 has nothing to begin with",
        ),
        (
            TEXT,
            fields(),
            "cap:c:d@2 takes no parameters: the result of cap:a:b@1 would not reach it",
        ),
    ],
)
def test_a_result_that_does_not_fit_is_explained(
    gives: JsonObject, takes: JsonObject, why: str
) -> None:
    assert misfit(gives, takes) == why


def test_many_fields_are_counted_and_deep_ones_are_not_compared() -> None:
    many = fields(**{f"f{n}": NUMBER for n in range(14)})
    assert misfit(many, fields(url=TEXT)).endswith("f11 (number) and 2 more")
    given, wanted = fields(a=NUMBER), fields(a=TEXT)
    for _ in range(4):
        given, wanted = fields(a=given), fields(a=wanted)
    assert joined(given, wanted) == "{ a: step1.a }"


def test_an_unknown_result_is_passed_whole_and_said() -> None:
    untold: JsonObject = {"type": "object"}
    for unknown in (ANY, untold):
        steps = [Step("cap:a:b@1", ANY, unknown), Step("cap:c:d@2", fields(path=TEXT), ANY)]
        found = pipeline(steps)
        assert 'mcp.call("cap:c:d@2", step1)' in found.code
        assert found.notices == (
            "the result of cap:a:b@1 is not known: whether cap:c:d@2 takes it shows when it runs",
        )


def test_everything_that_does_not_fit_is_said_at_once() -> None:
    takes = fields(path=TEXT)
    steps = [Step(f"cap:a:s{n}@1", takes, NUMBER) for n in range(3)]
    with pytest.raises(Misfit) as refused:
        pipeline(steps)
    assert str(refused.value).count("takes path as string") == 2
