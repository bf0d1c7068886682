"""The calls of nested capabilities, as the executor and the gateway get them."""

import json
from dataclasses import replace

from pml_analysis.capability_reading import read_capability
from pml_analysis.decision.capabilities import MAX_DEPTH
from pml_analysis.text.limits import DEFAULT_LIMITS
from pml_common.contracts.structure import CapabilityNode, ReferenceArgument, TaskNode
from services.analyzer.tests.support.library import calling, described, library

COPY = described(
    "fs:copy",
    "const r = await mcp.fs.read({ path: args.from });\n"
    "await mcp.fs.write({ path: '/work/x', content: r.content, ...args.more });\n"
    "await capabilities.fs_keep({ path: args.to ?? 'b', ...args.rest });\n",
    takes={"type": "object", "properties": {"from": {}, "to": {}}},
)
KEEP = described(
    "fs:keep",
    "for (const x of args.l) await mcp.fs.write({ path: args.path, ...JSON.parse(x) });",
    takes={"type": "object", "properties": {"path": {}, "l": {}}},
)


def test_nested_capabilities_tell_their_own_calls() -> None:
    copy, keep = calling("await capabilities.fs_copy(args);", library(COPY, KEEP)).capabilities
    assert [json.loads(node.model_dump_json()) for node in copy.nodes] == [
        {
            "id": "n1",
            "type": "task",
            "line": 1,
            "column": 17,
            "tool": "fs:read",
            "arguments": {
                "path": {"type": "parameter", "parameter_name": "from", "path": ["from"]}
            },
            "via": [],
            "repeats": False,
        },
        {
            "id": "n2",
            "type": "task",
            "line": 2,
            "column": 7,
            "tool": "fs:write",
            "arguments": {
                "path": {"type": "reference", "expression": "'/work/x'", "node_id": None},
                "content": {
                    "type": "reference",
                    "expression": "r.content",
                    "node_id": "n1",
                },
                "...args.more": {"type": "parameter", "parameter_name": "more", "path": ["more"]},
            },
            "via": [],
            "repeats": False,
        },
        {
            "id": "n3",
            "type": "capability",
            "line": 3,
            "column": 7,
            "capability_id": str(KEEP.capability_id),
            "name": "fs:keep",
            "arguments": {
                "path": {"type": "reference", "expression": "args.to ?? 'b'", "node_id": None},
                "...args.rest": {"type": "parameter", "parameter_name": "rest", "path": ["rest"]},
            },
            "via": [],
            "repeats": False,
        },
    ]
    (write,) = keep.nodes
    assert write.repeats
    spread = write.arguments["...JSON.parse(x)"]
    assert isinstance(spread, ReferenceArgument)
    assert spread.keys == ("path", "content")


def test_a_result_of_a_capability_is_computed() -> None:
    code = "const a = await capabilities.fs_keep({}); await mcp.fs.read({ path: a.x });"
    (*_, read) = calling(code, library(KEEP)).structure.nodes
    assert isinstance(read, TaskNode)
    told = read.arguments["path"]
    assert isinstance(told, ReferenceArgument)
    assert (told.node_id, told.path) == ("n1", None)


def test_a_capability_below_the_deepest_is_told_as_it_is_named() -> None:
    chain = [
        described(f"c:n{at}", f"await capabilities.c_n{at + 1}({{}});")
        for at in range(1, MAX_DEPTH + 1)
    ]
    found = calling("await capabilities.c_n1({});", library(*chain)).capabilities
    (last,) = found[-1].nodes
    assert isinstance(last, CapabilityNode)
    assert (last.name, last.capability_id) == (f"c_n{MAX_DEPTH + 1}", None)


def test_a_capability_whose_calls_are_given_too_much_cannot_be_called() -> None:
    limits = replace(DEFAULT_LIMITS, source_bytes=1_000)
    calls = "await mcp.fs.read({ path: x });" * 10
    about = described("fs:much", f"const x = '{'x' * 500}'; {calls}")
    assert "given too much" in (read_capability(about, limits).fault or "")
