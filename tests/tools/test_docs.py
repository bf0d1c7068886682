"""Tests that the documents name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("services", "libs", "tests")
DOCUMENTS = sorted((ROOT / "docs").glob("*.md"))
TEST = re.compile(r"`(?:[\w/]+\.py::)?(test_\w+)`")
FILE = re.compile(r"`(?:[\w/]*/)?(test_\w+\.py)(?:::\w+)?`")
DEFINED = re.compile(r"^\s*(?:async )?def (test_\w+)\(", re.MULTILINE)


@pytest.fixture(scope="module")
def defined() -> set[str]:
    """Names of all tests and of their files."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("test_*.py")]
    names = {name for path in files for name in DEFINED.findall(path.read_text(encoding="utf-8"))}
    return names | {path.name for path in files}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_test_that_a_document_names_exists(document: Path, defined: set[str]) -> None:
    text = document.read_text(encoding="utf-8")
    assert {*TEST.findall(text), *FILE.findall(text)} <= defined
