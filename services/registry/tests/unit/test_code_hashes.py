"""Verification of a capability's code hash."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from pml_registry.adapters import code_hashes
from pml_registry.adapters.code_hashes import CodeHashes

CODE = "const a = args.n; return a + 1;"
SAME = "// another layout\nconst b = args.n\nreturn b + 1"


def analysis_of(code: str) -> Analysis:
    found = analyze(code, tools=(), policy=Policy())
    assert isinstance(found, Analysis)
    return found


async def test_the_hash_equals_the_analysis_hash() -> None:
    hashes = CodeHashes()
    for code in (CODE, SAME, "return 1"):
        assert await hashes.hash_of(code) == analysis_of(code).code_hash
    assert await hashes.hash_of(CODE) == await hashes.hash_of(SAME)


@pytest.mark.parametrize("code", ["", "return (", "return 1\x00", "[" * 5000 + "]" * 5000])
async def test_an_invalid_program_has_no_hash_or_that_of_an_empty_one(code: str) -> None:
    found = await CodeHashes().hash_of(code)
    assert found is None or not code


async def test_a_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes, read = CodeHashes(most=2), list[str]()

    def note(code: str) -> str:
        read.append(code)
        return "hash"

    monkeypatch.setattr(code_hashes, "code_hash_of", note)
    for code in ("a", "a", "b", "b", "c", "a"):
        assert await hashes.hash_of(code) == "hash"
    assert read == ["a", "b", "c", "a"]


async def test_the_shape_of_a_program_tells_whether_it_calls_anything() -> None:
    read, other = [f"return mcp.fs.read({{ path: '{name}' }});" for name in "ab"]
    hashes = CodeHashes()
    assert await hashes.shape_of(read) == await hashes.shape_of(other)
    pure = await hashes.shape_of(CODE)
    assert pure is not None
    assert not pure.makes_calls
    assert await hashes.shape_of("return (") is None
