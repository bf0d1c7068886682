"""BERT's forward pass in numpy for one text: without a batch, no padding and no mask."""

import numpy as np
from numpy.typing import NDArray

from pml_registry.adapters.minilm_weights import HEADS, WIDTH, Affine, Floats, Layer, Norm, Weights

_EPSILON = np.float32(1e-12)
# erfc by Abramowitz & Stegun 7.1.26: absolute error at most 1.5e-7, float32's own grain.
_ERFC_P = np.float32(0.3275911)
_ERFC_A = tuple(
    np.float32(a) for a in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
)
_SQRT_HALF = np.float32(0.5**0.5)


def encode(weights: Weights, ids: NDArray[np.intp]) -> Floats:
    """Map token ids (t,), special tokens included, to a unit vector (384,)."""
    x = weights.words[ids]
    x += weights.positions[: len(ids)]
    _normalise(x, weights.norm)
    for layer in weights.layers:
        x += _attend(x, layer)
        _normalise(x, layer.attention_norm)
        x += _feed_forward(x, layer)
        _normalise(x, layer.output_norm)
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


def _attend(x: Floats, layer: Layer) -> Floats:
    heads = _affine(x, layer.attention_in)
    queries, keys, values = heads[:HEADS], heads[HEADS : 2 * HEADS], heads[2 * HEADS :]
    scores = queries @ keys.swapaxes(1, 2)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return _rows(_affine(_rows(scores @ values), layer.attention_out))


def _feed_forward(x: Floats, layer: Layer) -> Floats:
    inner = _affine(x, layer.up)
    gelu(inner)
    return _rows(_affine(_rows(inner), layer.down))


def _affine(x: Floats, affine: Affine) -> Floats:
    """Map (t, inputs) to panels (outputs / 32, t, 32)."""
    y = x @ affine.panels
    y += affine.bias
    return y


def _rows(panels: Floats) -> Floats:
    """Reshape (p, t, 32) to (t, 32 p)."""
    return panels.transpose(1, 0, 2).reshape(panels.shape[1], -1)


def _normalise(x: Floats, norm: Norm) -> None:
    """Apply layer normalisation over the last axis, in place."""
    x -= x.mean(axis=-1, keepdims=True)
    variance = np.einsum("ij,ij->i", x, x)[:, np.newaxis] / np.float32(WIDTH)
    x /= np.sqrt(variance + _EPSILON)
    x *= norm.gain
    x += norm.bias


def gelu(x: Floats) -> None:
    """Apply exact GELU in place: max(x, 0) - |x|·erfc(|x|/√2)/2."""
    size = np.abs(x)
    u = size * _SQRT_HALF
    t = u * _ERFC_P
    t += np.float32(1)
    np.reciprocal(t, out=t)
    tail = t * _ERFC_A[0]
    for coefficient in _ERFC_A[1:]:
        tail += coefficient
        tail *= t
    np.multiply(u, -u, out=u)
    np.exp(u, out=u)
    tail *= u
    tail *= size
    tail *= np.float32(0.5)
    np.maximum(x, np.float32(0), out=x)
    x -= tail
