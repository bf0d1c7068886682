"""Cost of a sentence embedding, with the bare matrix products of its model for comparison.

`uv run python bench/embed.py [rounds]`
"""

import resource
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from pml_registry.adapters.minilm import MiniLmEmbedder

SHORT = "read a json file and return its keys"
SHORT_TOKENS = 11
WORDS = f"{SHORT} then write the sorted result into the report".split()
WARM_UP = 10
SHAPES = ((384, 1152), (384, 384), (384, 1536), (1536, 384)) * 6
PANEL = 32


def mixed(count: int) -> list[str]:
    """Texts of 3 to 16 words."""
    return [" ".join(WORDS[: 3 + index % 14]) for index in range(count)]


def took(work: Callable[[], object]) -> float:
    """Milliseconds until it is done."""
    began = perf_counter()
    work()
    return (perf_counter() - began) * 1e3


def report(label: str, rounds: int, work: Callable[[], object]) -> None:
    """Measure and print one line."""
    for _ in range(WARM_UP):
        work()
    times = sorted(took(work) for _ in range(rounds))
    p95 = times[int(len(times) * 0.95)]
    print(f"{label:<48} p50 {statistics.median(times):7.2f} ms   p95 {p95:7.2f} ms")


def report_products(rounds: int) -> None:
    """The model's 24 products for the short text: in numpy's layout, and in panels."""
    random = np.random.default_rng(0)
    x = {width: random.standard_normal((SHORT_TOKENS, width), np.float32) for width in (384, 1536)}
    plain = [random.standard_normal(shape, np.float32) for shape in SHAPES]
    panels = [in_panels(weight) for weight in plain]
    report("  its matrix products alone, x @ W", rounds, lambda: [x[len(w)] @ w for w in plain])
    report(
        "  its matrix products alone, in panels",
        rounds,
        lambda: [x[w.shape[1]] @ w for w in panels],
    )


def in_panels(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Reshape (inputs, outputs) to (outputs / 32, inputs, 32)."""
    return np.ascontiguousarray(weight.reshape(len(weight), -1, PANEL).transpose(1, 0, 2))


def report_throughput(embedder: MiniLmEmbedder, threads: int) -> None:
    """Embed 256 mixed texts, split between this many callers."""
    texts = mixed(256)
    with ThreadPoolExecutor(threads) as pool:
        parts = [texts[start : start + 16] for start in range(0, len(texts), 16)]
        times = [took(lambda: list(pool.map(embedder.embed, parts))) for _ in range(3)]
    seconds = statistics.median(times) / 1e3
    print(f"{f'256 texts of 3 to 16 words, threads: {threads}':<48} {256 / seconds:11.0f} texts/s")


def main() -> None:
    """Print load time, memory, latency and throughput."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    began = perf_counter()
    embedder = MiniLmEmbedder.load()
    print(f"{'load: read, check, lay out':<48}     {(perf_counter() - began) * 1e3:7.0f} ms")
    embedder.embed([SHORT])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'peak resident memory':<48}     {peak:7.0f} MiB")
    report(f"one text of {SHORT_TOKENS} tokens", rounds, lambda: embedder.embed([SHORT]))
    report_products(rounds)
    batch = mixed(32)
    report("32 texts of 3 to 16 words", max(rounds // 10, 1), lambda: embedder.embed(batch))
    for threads in (1, 2):
        report_throughput(embedder, threads)


if __name__ == "__main__":
    main()
