"""Parts of an intent: the whole text, its clauses, and a step that it implies."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pml_registry.domain.terms import terms_of

WHOLE_CANDIDATES = 60
"""Candidates of each kind for the whole intent by meaning, and again by words."""

CLAUSE_CANDIDATES = 30
"""The same for each other part."""

TERM_CANDIDATES = 200
"""Candidates read for one term: those in which it weighs most. It bounds a search among many
records; in a small catalog it is all of them."""

MAX_CLAUSES = 8
MAX_TERMS = 100
_MIN_WORDS = 2

WRITING = "write to a file"
"""The step implied by an intent that saves a result at a path."""

_CLAUSE_END = re.compile(r"(?<=[.!?;])\s+|,\s+|\s+(?:and|then|or)\s+|\n")
_TRIMMED = " .,;!?"
# A path has a slash and a file extension. It starts where no path, word or URL goes on, so that a
# long text is scanned once.
_FILE_PATH = re.compile(r"(?<![\w:/.@~-])(?:[\w.@~-]*/)+[\w.@-]*\.\w{1,5}\b")
_SAVING = re.compile(
    r"\b(?:sav|writ|stor|creat|generat|produc)(?:e|ed|es|ing|ten)\b"
    r"|\b(?:export|download|output)(?:s|ed|ing)?\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?]\s")


@dataclass(frozen=True)
class Part:
    """A text to search for, its terms, each once, and the number of candidates to consider."""

    text: str
    terms: tuple[str, ...]
    limit: int


def parts_of(intent: str) -> Sequence[Part]:
    """The whole intent first; then, of a compound intent, its clauses and the implied step."""
    implied = [WRITING] if saves_file(intent) else []
    others = list(dict.fromkeys([*clauses_of(intent), *implied]))
    return [
        _part(intent, WHOLE_CANDIDATES),
        *(_part(text, CLAUSE_CANDIDATES) for text in others if text != intent),
    ]


def clauses_of(intent: str) -> Sequence[str]:
    """The clauses of an intent, in order; none if it is a single clause."""
    pieces = (piece.strip(_TRIMMED) for piece in _CLAUSE_END.split(intent))
    clauses = [piece for piece in pieces if len(piece.split()) >= _MIN_WORDS]
    return clauses[:MAX_CLAUSES] if len(clauses) > 1 else []


def saves_file(intent: str) -> bool:
    """Whether the intent names a file after a verb of saving, in one sentence: the result has to be
    written there, whichever tool computes it."""
    start = 0
    for path in _FILE_PATH.finditer(intent):
        sentence = _SENTENCE_END.split(intent[start : path.start()])[-1]
        if _SAVING.search(sentence):
            return True
        start = path.end()
    return False


def _part(text: str, limit: int) -> Part:
    return Part(text, tuple(dict.fromkeys(terms_of(text)))[:MAX_TERMS], limit)
