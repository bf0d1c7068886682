"""Releases: versions, changelog, weights, manifests, licences, audits."""

import subprocess
import sys
import tarfile
from datetime import date
from email import message_from_string
from pathlib import Path

import pytest

from tools.dependencies.audit import findings
from tools.dependencies.licences import is_allowed, licence_of
from tools.release.bundle import build_bundle
from tools.release.changelog import cut, section
from tools.release.version import declared, disagreements, set_version

CHANGES = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 - 2026-01-02\n\n- Old.\n"


def test_the_version_is_the_same_everywhere() -> None:
    assert disagreements(declared()) == []


def test_a_version_is_set_in_every_place(tmp_path: Path) -> None:
    project = tmp_path / "libs/one/pyproject.toml"
    project.parent.mkdir(parents=True)
    project.write_text(
        'version = "0.1.0"\ndependencies = [\n  "pml-common==0.1.0",\n  "x==0.1.0",\n]\n'
    )
    assert disagreements("0.2.0", tmp_path) == [
        "libs/one/pyproject.toml:1: 0.1.0, not 0.2.0",
        "libs/one/pyproject.toml:3: 0.1.0, not 0.2.0",
    ]
    assert set_version("0.2.0", tmp_path) == [project]
    assert disagreements("0.2.0", tmp_path) == []
    assert '"x==0.1.0"' in project.read_text()
    with pytest.raises(ValueError, match="no version"):
        set_version("next", tmp_path)


def test_the_unreleased_changes_become_those_of_a_version() -> None:
    text = cut(CHANGES, "0.2.0", date(2026, 3, 4))
    assert "## Unreleased\n\n## 0.2.0 - 2026-03-04\n\n- New.\n\n## 0.1.0" in text
    assert (section(text, "0.2.0"), section(text, "0.1.0")) == ("- New.", "- Old.")
    assert section(CHANGES, "0.2.0") is None
    with pytest.raises(ValueError, match="nothing under"):
        cut(text, "0.3.0", date(2026, 3, 5))


def test_the_manifests_are_packed_the_same_twice_and_make_secrets(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    archive = build_bundle(tmp_path, "9.9.9", 1_000_000_000)
    again = build_bundle(tmp_path / "again", "9.9.9", 1_000_000_000)
    assert archive.read_bytes() == again.read_bytes()
    with tarfile.open(archive) as tar:
        assert {(entry.mtime, entry.uid, entry.mode) for entry in tar} == {
            (1_000_000_000, 0, 0o644)
        }
    # tarfile's filter, without which later versions warn, is missing in Debian 12's Python.
    subprocess.run(("tar", "-xf", archive, "-C", tmp_path), check=True)
    command = (sys.executable, "-m", "tools.k8s.secrets", "pml", tmp_path / "keys")
    folder = tmp_path / "pml-deploy-9.9.9"
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    assert '"kind": "Secret"' in done.stdout


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ("License-Expression: MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("License: 3-Clause BSD License", "BSD-3-Clause"),
        ("Classifier: License :: OSI Approved :: MIT License", "MIT"),
        ("License: see the file", None),
        ("Name: x", None),
    ],
)
def test_a_licence_is_read_from_metadata(fields: str, licence: str | None) -> None:
    assert licence_of(message_from_string(f"{fields}\n\n")) == licence


def test_licences_that_bind_users_are_not_allowed() -> None:
    assert is_allowed("MPL-2.0 AND MIT")
    assert is_allowed("GPL-3.0-only OR MIT")
    for refused in ("GPL-3.0-only", "MIT AND AGPL-3.0-only", "(MIT)", "BSD License"):
        assert not is_allowed(refused)


def test_packages_that_no_advisory_service_knows_fail_an_audit() -> None:
    skipped = {"name": "b", "skip_reason": "Dependency not found on PyPI"}
    assert (
        "1 of 2 packages were not audited (b)"
        in findings({"dependencies": [{"name": "a", "version": "1", "vulns": []}, skipped]})[0]
    )
    hole = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2"]}
    assert findings({"dependencies": [{"name": "a", "version": "1", "vulns": [hole]}]}) == [
        "a 1: PYSEC-1 CVE-1, mended in 2"
    ]
    assert "nothing was audited" in findings({"dependencies": []})[0]
