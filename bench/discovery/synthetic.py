"""Synthetic records of the registry in Postgres, seeded, and vectors for them."""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID, uuid5

import asyncpg
import numpy as np
from numpy.typing import NDArray

from libs.pml_local.tests.support.databases import as_owner
from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.decision import Decision
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import StaticStructure, TaskNode
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_registry.domain.documents import (
    capability_document,
    capability_terms,
    tool_document,
    tool_terms,
)
from pml_registry.ports import CodeShape
from pml_registry.ports.vectors import Embedded

SCOPE = Scope(org="acme", project="main")
"""The scope that is measured: four records in five."""

TOOLS_PER_RECORD = 10
"""One tool for so many capabilities."""

_OTHERS = tuple(Scope(org=f"org{at}", project="main") for at in range(4))
_SEED = 0
_DIMENSION, _TOPICS, _WORDS = 384, 500, 20_000
_SPREAD = 0.8
"""Length of the noise around a topic's direction."""

_PATIENCE_S = 900.0
_SPACE = UUID("6f0c2a52-2f3c-4a43-9d3b-5a5a0f1f3c11")
_SCHEMA: JsonObject = {"type": "object", "properties": {"path": {"type": "string"}}}
_STRUCTURE = '{"nodes": [], "edges": []}'

_FAST = """
ALTER TABLE workflow_pattern DISABLE TRIGGER USER;
ALTER TABLE capability_versions DISABLE TRIGGER USER;
ALTER TABLE tool_schema DISABLE TRIGGER USER;
ALTER TABLE search_vector DISABLE TRIGGER USER
"""
_SEARCHED = """
ALTER TABLE workflow_pattern ENABLE TRIGGER USER;
ALTER TABLE capability_versions ENABLE TRIGGER USER;
ALTER TABLE tool_schema ENABLE TRIGGER USER;
ALTER TABLE search_vector ENABLE TRIGGER USER;
TRUNCATE search_term;
INSERT INTO search_term
SELECT org, project, 'tool', weighed.key, weighed.value::real, tool_id
FROM tool_schema CROSS JOIN LATERAL jsonb_each_text(terms) AS weighed
ORDER BY org, project, weighed.key, weighed.value::real;
INSERT INTO search_term
SELECT org, project, 'capability', weighed.key, weighed.value::real, pattern_id::text
FROM workflow_pattern CROSS JOIN LATERAL jsonb_each_text(terms) AS weighed
WHERE listed
ORDER BY org, project, weighed.key, weighed.value::real
"""


_FILLED = (
    "search_vector",
    "workflow_pattern",
    "capability_usage",
    "capability_records",
    "capability_versions",
    "tool_server",
    "tool_schema",
    "search_term",
    "offered_shapes",
)


class Synthetic:
    """Texts and vectors of records by their number; an embedder that looks vectors up, and a
    hashing that trusts the hash at the end of a program."""

    model_name = "synthetic"

    def __init__(self, size: int) -> None:
        random = np.random.default_rng(_SEED)
        self._topics = _unit(random.standard_normal((_TOPICS, _DIMENSION)).astype(np.float32))
        noise = _unit(random.standard_normal((size, _DIMENSION)).astype(np.float32))
        self._topic = random.integers(_TOPICS, size=size)
        self.vectors = _unit(self._topics[self._topic] + _SPREAD * noise)
        # Word frequencies as in a language: the n-th word a share of 1 / n.
        share = 1.0 / np.arange(1, _WORDS + 1, dtype=np.float64)
        self._words = random.choice(_WORDS, p=share / share.sum(), size=(size, 12))
        self._asked: dict[str, NDArray[np.float32]] = {}

    def text(self, at: int) -> str:
        """The description of a record: words of a made-up language."""
        return " ".join(_word(number) for number in self._words[at])

    def intents(self, count: int) -> Sequence[str]:
        """Intents of seven words each, of one clause, and their vectors near a record's."""
        random = np.random.default_rng(_SEED + 1)
        chosen = random.integers(len(self.vectors) // 100, size=count)
        for place, at in enumerate(chosen):
            text = " ".join(_word(number) for number in self._words[at][:6]) + f" {_word(place)}"
            noise = _unit(random.standard_normal((1, _DIMENSION)).astype(np.float32))[0]
            self._asked[text] = _unit((self.vectors[at] + 0.5 * noise)[None])[0]
        return list(self._asked)[-count:]

    def names(self, size: int, count: int) -> Sequence[str]:
        """Names of records in the scope that is measured."""
        random = np.random.default_rng(_SEED + 2)
        return [
            _name(int(at)) for at in random.integers(size, size=count) if _scope(int(at)) == SCOPE
        ]

    async def model(self) -> str:
        """The name under which the vectors are stored."""
        return self.model_name

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of intents; of other texts, a fixed one each."""
        vectors = [
            self._asked[text]
            if text in self._asked
            else self.vectors[zlib.crc32(text.encode()) % len(self.vectors)]
            for text in texts
        ]
        return Embedded(self.model_name, [vector.tolist() for vector in vectors])

    async def hash_of(self, code: str) -> str:
        """The hash in a comment at the text's end."""
        return code.partition("// ")[2]

    async def shape_of(self, code: str) -> CodeShape:
        """A shape of each text's own."""
        return CodeShape(shape_hash=await self.hash_of(code), makes_calls=True)


async def fill(dsn: str, data: Synthetic, begin: int, end: int) -> None:
    """Add the records from number `begin` until `end`, and build the vector indexes, as the owner:
    COPY writes no rows under row-level security, which is therefore off meanwhile."""
    session = await asyncpg.connect(
        as_owner(dsn), server_settings={"search_path": "registry,public"}
    )
    try:
        for table in _FILLED:
            await session.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        await session.set_type_codec(
            "vector", schema="public", encoder=_encoded, decoder=bytes, format="binary"
        )
        await session.execute("SET maintenance_work_mem = '1GB'")
        await session.execute("SELECT discard_vectors($1)", data.model_name)
        await session.execute(_FAST)
        await _copy(session, "workflow_pattern", _PATTERN, _patterns(data, begin, end))
        numbers = range(begin, end)
        await _copy(session, "capability_usage", _USAGE, (_usage(at) for at in numbers))
        await _copy(session, "capability_records", _RECORD, (_record(at) for at in numbers))
        await _copy(session, "capability_versions", _VERSION, (_version(at) for at in numbers))
        tools = range(begin // TOOLS_PER_RECORD, end // TOOLS_PER_RECORD)
        if begin == 0:
            servers = [
                (scope.org, scope.project, f"server{n}")
                for scope in (SCOPE, *_OTHERS)
                for n in range(20)
            ]
            await _copy(session, "tool_server", ("org", "project", "server"), servers)
        await _copy(session, "tool_schema", _TOOL, (_tool(data, at) for at in tools))
        await _copy(session, "search_vector", _VECTOR, _vectors(data, numbers, tools))
        await session.execute(_SEARCHED, timeout=_PATIENCE_S)
        await session.execute(
            "SELECT prepare_vectors($1, $2)", data.model_name, _DIMENSION, timeout=_PATIENCE_S
        )
        for table in _FILLED:
            await session.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        await session.execute("VACUUM ANALYZE", timeout=_PATIENCE_S)
    finally:
        await session.close()


def registrations(begin: int, count: int) -> Sequence[ExecutionAnalyzed]:
    """Analyses of new programs, numbered from `begin`."""
    return [_analysis(at) for at in range(begin, begin + count)]


def _analysis(at: int) -> ExecutionAnalyzed:
    code_hash = f"f{at:063x}"
    code = f"return await mcp.server1.tool1({{path: args.path}}) // {code_hash}"
    workflow_id = uuid5(_SPACE, f"workflow {at}")
    return ExecutionAnalyzed(
        scope=SCOPE,
        event_id=ids.effect_id(workflow_id, "execution-analyzed"),
        workflow_id=workflow_id,
        principal="bench",
        capability=CapabilityIdentity(
            capability_id=ids.capability_id(SCOPE, code_hash), code_hash=code_hash
        ),
        intent=f"{_word(at % _WORDS)} {_word(at % 97)}",
        code=code,
        instrumented=code,
        structure=StaticStructure(
            nodes=(TaskNode(id="n1", line=1, column=1, tool="server1:tool1"),)
        ),
        decision=Decision(verdict="allow"),
        parameters_schema=_SCHEMA,
    )


_KEY = ("org", "project")
_PATTERN = (
    *_KEY,
    *("pattern_id", "code", "code_hash", "structure", "parameters_schema", "description"),
    *("tools_used", "listed", "document", "created_by", "terms", "found_by"),
)
_USAGE = (*_KEY, "pattern_id", "usage_count", "success_count")
_RECORD = (*_KEY, "record_id", "name", "namespace", "action", "latest", "owner")
_VERSION = (*_KEY, "record_id", "number", "pattern_id", "created_by")
_TOOL = (
    *_KEY,
    *("server", "name", "definition", "definition_hash", "document", "terms"),
)
_VECTOR = (*_KEY, "kind", "id", "model", "listed", "embedding")


def _patterns(data: Synthetic, begin: int, end: int) -> Iterator[tuple[object, ...]]:
    for at in range(begin, end):
        name, text, uses = _name(at), data.text(at), [f"server{at % 20}:tool{at % 97}"]
        yield (
            *_key(at),
            _pattern_id(at),
            "return 1",
            f"{_SEED:032x}{at:032x}",
            _STRUCTURE,
            json.dumps(_SCHEMA),
            text,
            uses,
            True,
            capability_document(name, text, uses),
            "bench",
            json.dumps(capability_terms(name, text, uses, _SCHEMA)),
            None,
        )


def _usage(at: int) -> tuple[object, ...]:
    return (*_key(at), _pattern_id(at), at % 30, at % 30)


def _record(at: int) -> tuple[object, ...]:
    namespace, _, action = _name(at).partition(":")
    return (*_key(at), _record_id(at), _name(at), namespace, action, 1, "bench")


def _version(at: int) -> tuple[object, ...]:
    return (*_key(at), _record_id(at), 1, _pattern_id(at), "bench")


def _vectors(
    data: Synthetic, capabilities: Iterable[int], tools: Iterable[int]
) -> Iterator[tuple[object, ...]]:
    for at in capabilities:
        key = (*_key(at), "capability", str(_pattern_id(at)))
        yield (*key, data.model_name, True, data.vectors[at])
    for at in tools:
        tool_id = f"server{at % 20}:{_word(at % _WORDS)}_{at}"
        other = len(data.vectors) - 1 - at
        yield (*_key(at), "tool", tool_id, data.model_name, True, data.vectors[other])


def _tool(data: Synthetic, at: int) -> tuple[object, ...]:
    other = len(data.vectors) - 1 - at
    tool = ToolDefinition(
        server=f"server{at % 20}",
        name=f"{_word(at % _WORDS)}_{at}",
        description=data.text(other),
        input_schema=_SCHEMA,
    )
    return (
        *_key(at),
        tool.server,
        tool.name,
        tool.model_dump_json(),
        tool.definition_hash,
        tool_document(tool),
        json.dumps(tool_terms(tool)),
    )


def _scope(at: int) -> Scope:
    return _OTHERS[at // 5 % len(_OTHERS)] if at % 5 == 4 else SCOPE


def _key(at: int) -> tuple[str, str]:
    scope = _scope(at)
    return scope.org, scope.project


def _name(at: int) -> str:
    return f"space{at % 50}:action_{at}"


def _pattern_id(at: int) -> UUID:
    return uuid5(_SPACE, f"pattern {at}")


def _record_id(at: int) -> UUID:
    return uuid5(_SPACE, f"record {at}")


def _word(number: int) -> str:
    """A word of a made-up language: each number its own."""
    letters = "bdfgklmnprstvz"
    syllables: list[str] = []
    while number or not syllables:
        number, place = divmod(number, len(letters) * 5)
        syllables.append(letters[place // 5] + "aeiou"[place % 5])
    return "".join(syllables) + "k"


def _unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _encoded(vector: NDArray[np.float32]) -> bytes:
    """pgvector's binary form: dimension, a zero, big-endian floats."""
    return struct.pack(">HH", len(vector), 0) + vector.astype(">f4").tobytes()


async def _copy(
    session: asyncpg.Connection,
    table: str,
    columns: Sequence[str],
    rows: Iterable[tuple[object, ...]],
) -> None:
    await session.copy_records_to_table(table, columns=columns, records=rows, timeout=_PATIENCE_S)
