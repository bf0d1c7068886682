"""Cost of signatures of versions, per version: hashing its code anew with the parser, signing it,
and checking it before it is handed out, the first time and after. A program has 54 calls; the
sums are of this process's processor time, alone in its thread.
`uv run python bench/signatures.py [--versions N]`
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from time import process_time
from uuid import uuid4

from pml_analysis.capability_reading import code_hash_of
from pml_common.contracts import ids
from pml_common.contracts.scope import Scope
from pml_common.signing import SigningKey, TrustedKeys
from pml_registry.adapters.code_hashes import CodeHashes
from pml_registry.adapters.version_keys import VersionKeys
from pml_registry.application.version_checks import VersionChecks
from pml_registry.domain.signatures import Signature, StoredVersion, VersionStatement

SCOPE = Scope(org="acme", project="webapp")
CALLS, PARSED = 54, 50


def program(number: int) -> str:
    """Return a program that no other number has."""
    calls = (
        f"const v{at} = await mcp.fs.read_text({{ path: 'a{number}/{at}.txt' }});"
        for at in range(CALLS)
    )
    return "\n".join([*calls, "return v0;"])


def measured(
    what: str, work: Callable[[StoredVersion], object], on: Sequence[StoredVersion]
) -> str:
    """Do the work and say what it costs for each."""
    begin = process_time()
    for each in on:
        work(each)
    return f"{what:<40}{(process_time() - begin) / len(on) * 1e6:>9.0f} µs"


def signed(key: SigningKey, version: StoredVersion) -> StoredVersion:
    """Sign without a look at the hash, which is invented here."""
    signature = Signature(key.kid, key.sign(version.statement.content()))
    return StoredVersion(version.statement, signature)


def main(versions: int) -> None:
    """Measure and print."""
    key = SigningKey.generate("registry")
    made: list[StoredVersion] = []
    for number in range(versions):
        code_hash = f"{number:064x}"
        behaviour = ids.capability_id(SCOPE, code_hash)
        statement = VersionStatement(SCOPE, uuid4(), 1, behaviour, code_hash, program(number))
        made.append(StoredVersion(statement, None))
    lines = [
        measured(
            "hash of the code, by the parser",
            lambda each: code_hash_of(each.statement.code),
            made[:PARSED],
        ),
        measured("signature", lambda each: signed(key, each), made),
    ]
    stored = [signed(key, each) for each in made]
    keys = VersionKeys(key, TrustedKeys([key.public]), CodeHashes(), versions)
    checks = VersionChecks(keys, 5)
    lines += [measured(f"check, {when} time", checks.refusal, stored) for when in ("first", "next")]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=5000)
    main(parser.parse_args().versions)
