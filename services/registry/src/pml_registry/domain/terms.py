"""Terms of texts: stemmed words without stop words, weighed by field for lexical ranking."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

from snowballstemmer.english_stemmer import EnglishStemmer

SATURATION = 2.0
"""k1 of BM25: the frequency at which a term has half of its weight, in a text of typical length."""

LENGTH_EFFECT = 0.5
"""b of BM25: 0 ignores a text's length, 1 divides by it."""

TYPICAL_LENGTH = 40.0
"""Weighted terms in a tool of average length; a constant, so that weights can be stored."""

MAX_TERM_CHARACTERS = 40
"""Longer words are data, such as base64."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[_\-./:]+")
_WORD = re.compile(r"[^\W_]+")
_STOP_WORDS = frozenset(
    _WORD.findall(
        """
        a about all also am an and any are as at be by can could did do does for from had has
        have he help here him his how i if in into is it its just let me my need no not of on or
        our out please s she should so some t than that the their them then there these they
        this those to too up us very want was we were what when where which who why will with
        would you your
        """
    )
)


def as_words(name: str) -> str:
    """Split an identifier into words: `fs:readTextFile` is `fs read Text File`."""
    return " ".join(_SEPARATORS.sub(" ", _CAMEL.sub(" ", name)).split())


def terms_of(text: str) -> Sequence[str]:
    """Stems of the words of a text, identifiers split, in order."""
    words = _WORD.findall(as_words(text).lower())
    return [
        stem(word) for word in words if word not in _STOP_WORDS and len(word) <= MAX_TERM_CHARACTERS
    ]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Cut inflection: `files`, `filed` and `filing` have one stem. Not a word of the language."""
    # A stemmer of its own for each word, since it holds state: callers may be threads.
    return cast(str, EnglishStemmer().stemWord(word))  # pyright: ignore[reportUnknownMemberType]


def weigh(fields: Sequence[tuple[str, float]]) -> Mapping[str, float]:
    """Weight in (0, 1) of each term in fields with field weights, as BM25F before its IDF:

    w = f / (f + k1 * (1 - b + b * length / typical)), where f and length sum field weights.
    """
    frequencies: dict[str, float] = {}
    for text, weight in fields:
        for term in terms_of(text):
            frequencies[term] = frequencies.get(term, 0.0) + weight
    length = sum(frequencies.values())
    scale = SATURATION * (1 - LENGTH_EFFECT + LENGTH_EFFECT * length / TYPICAL_LENGTH)
    return {term: f / (f + scale) for term, f in sorted(frequencies.items())}
