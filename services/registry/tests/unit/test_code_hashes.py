"""Verification of a capability's code hash."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_common.bus.errors import Rejected
from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import Policy
from pml_registry.adapters import code_hashes
from pml_registry.adapters.background_embedder import BackgroundEmbedder
from pml_registry.adapters.code_hashes import CodeHashes
from pml_registry.adapters.hash_embedder import HashEmbedder
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from services.registry.tests.support.builders import SCOPE, analysed
from services.registry.tests.support.stores import memory_stores, version_keys

CODE = "const a = args.n; return a + 1;"
SAME = "// another layout\nconst b = args.n\nreturn b + 1"


def analysis_of(code: str) -> Analysis:
    found = analyze(code, tools=(), policy=Policy())
    assert isinstance(found, Analysis)
    return found


async def admitted(analysis: ExecutionAnalyzed) -> bool:
    """Whether the registry accepts it. Raises Rejected."""
    embedder = BackgroundEmbedder(HashEmbedder)
    stores = memory_stores(version_keys(hashing=CodeHashes()))
    handled = await on_execution_analyzed([analysis], stores.capabilities, embedder, CodeHashes())
    await embedder.aclose()
    for error in handled.failed.values():
        raise error
    return len(handled.facts) == 1


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


async def test_only_code_that_matches_its_hash_is_admitted() -> None:
    true = analysed(analysis_of(CODE).code_hash).model_copy(update={"code": CODE})
    assert await admitted(true)
    with pytest.raises(Rejected, match="the code's hash is"):
        await admitted(true.model_copy(update={"code": "return 2"}))
    with pytest.raises(Rejected, match="NUL"):
        await admitted(true.model_copy(update={"code": "return 1\x00"}))
    with pytest.raises(Rejected, match="the code's hash is None"):
        await admitted(true.model_copy(update={"code": "return ("}))
    another = true.capability.model_copy(
        update={"capability_id": ids.capability_id(SCOPE, "0" * 64)}
    )
    with pytest.raises(Rejected, match="is not the id of"):
        await admitted(true.model_copy(update={"capability": another}))


async def test_the_shape_of_a_program_tells_whether_it_calls_anything() -> None:
    read, other = [f"return mcp.fs.read({{ path: '{name}' }});" for name in "ab"]
    hashes = CodeHashes()
    assert await hashes.shape_of(read) == await hashes.shape_of(other)
    pure = await hashes.shape_of(CODE)
    assert pure is not None
    assert not pure.makes_calls
    assert await hashes.shape_of("return (") is None
