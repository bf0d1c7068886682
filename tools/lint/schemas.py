"""Published message schemas: export them, and refuse changes that break a reader or a writer.

`check` compares the models with the committed schemas; `export` writes compatible changes and
refuses breaking ones: those need a new version in the message catalog.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from pml_common.contracts.catalog import MESSAGES, QUERIES

FOLDER = Path(__file__).parents[2] / "libs/pml_common/schemas"
PROSE = {"title", "description", "default", "examples"}

Schema = Mapping[str, object]


def current() -> dict[str, Schema]:
    """File name → schema of every message, query and reply in the message catalog."""
    models: dict[str, type[BaseModel]] = {}
    for message in MESSAGES:
        models[f"{message.kind}.{message.owner}.{message.name}.v{message.version}"] = message.model
    for query in QUERIES:
        name = f"qry.{query.owner}.{query.name}.v{query.version}"
        models[name] = query.model
        models[f"{name}.reply"] = query.reply
    return {f"{name}.json": model.model_json_schema() for name, model in models.items()}


def breaks(old: object, new: object, at: str = "") -> Iterator[str]:
    """Changes that break an old reader of a new message, or a new reader of an old one."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        if old != new:
            yield f"{at or 'schema'}: {json.dumps(old)} became {json.dumps(new)}"
        return
    before, after = cast(Schema, old), cast(Schema, new)
    for key in sorted((before.keys() | after.keys()) - PROSE - {"properties", "required", "$defs"}):
        yield from breaks(before.get(key), after.get(key), f"{at}/{key}")
    yield from _object_breaks(before, after, at)
    for name, definition in _mapping(before, "$defs").items():
        if name in _mapping(after, "$defs"):
            yield from breaks(definition, _mapping(after, "$defs")[name], f"{at}/{name}")


def _object_breaks(old: Schema, new: Schema, at: str) -> Iterator[str]:
    properties, others = _mapping(old, "properties"), _mapping(new, "properties")
    for name, schema in properties.items():
        if name not in others:
            yield f"{at}/{name}: removed"
        else:
            yield from breaks(schema, others[name], f"{at}/{name}")
    required, now_required = _names(old), _names(new)
    for name in sorted(now_required - required):
        yield f"{at}/{name}: required now"
    for name in sorted((required - now_required) & others.keys()):
        yield f"{at}/{name}: no longer required"


def _mapping(schema: Schema, key: str) -> Schema:
    return cast(Schema, schema.get(key, {}))


def _names(schema: Schema) -> set[str]:
    return set(cast(list[str], schema.get("required", [])))


def _text(schema: Schema) -> str:
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def main(action: str) -> int:
    """Run `check` or `export`; the exit code is 1 on a failure."""
    schemas = current()
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    problems = [
        f"{name}: {problem} - publish a new version instead"
        for name, text in committed.items()
        if name in schemas
        for problem in breaks(json.loads(text), schemas[name])
    ]
    problems += [
        f"{name}: published but no longer in the catalogue" for name in committed.keys() - schemas
    ]
    if action == "export" and not problems:
        for name, schema in schemas.items():
            (FOLDER / name).write_text(_text(schema), encoding="utf-8")
    elif action == "check":
        problems += [
            f"{name}: differs from the model - run `make schemas`"
            for name, schema in schemas.items()
            if committed.get(name) != _text(schema)
        ]
    for problem in sorted(problems):
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "check"))
