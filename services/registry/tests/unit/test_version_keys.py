"""Statements about versions, their signatures, and the mark that all are signed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from pml_common.contracts import ids
from pml_common.signing import PublicKey, SigningKey, TrustedKeys
from pml_registry.adapters.signed_mark import SignedMark
from pml_registry.adapters.version_keys import VersionKeys
from pml_registry.domain.signatures import Signature, VersionStatement
from pml_registry.ports import VersionRefused
from services.registry.tests.support.builders import (
    ELSEWHERE,
    HASH,
    OTHER_HASH,
    SCOPE,
    TrustedHashes,
)

KEY = SigningKey.generate("registry")
STATEMENT = VersionStatement(
    SCOPE, UUID(int=7), 2, ids.capability_id(SCOPE, HASH), HASH, "return 1;"
)


class CountingKey(PublicKey):
    """Counts verifications."""

    count = 0

    def verifies(self, content: bytes, signature: str) -> bool:
        type(self).count += 1
        return super().verifies(content, signature)


def keys(*trusted: PublicKey, most: int = 10) -> VersionKeys:
    return VersionKeys(KEY, TrustedKeys(trusted or [KEY.public]), TrustedHashes(), most)


def test_a_statement_is_canonical_and_says_what_it_is() -> None:
    assert STATEMENT.content() == (
        b"pml-capability-version-v1\n"
        b'{"behaviour":"' + str(STATEMENT.behaviour).encode() + b'","code_hash":"'
        b"a7f3" + b"0" * 60 + b'","org":"acme","project":"webapp",'
        b'"record_id":"00000000-0000-0000-0000-000000000007",'
        b'"text":"f58b7c3af621b52a2bb7dc67d4491f9ab6c6d16e3cfa1e46e670ff4f9a301fdc","version":2}'
    )


@pytest.mark.parametrize(
    "other",
    [
        {"scope": ELSEWHERE},
        {"record_id": uuid4()},
        {"number": 1},
        {"behaviour": uuid4()},
        {"code_hash": OTHER_HASH},
        {"code": "return 2;"},
    ],
)
async def test_a_signature_is_of_one_version_alone(other: Mapping[str, object]) -> None:
    signing = keys()
    signature = await signing.sign(STATEMENT)
    assert signing.is_signed(STATEMENT, signature)
    assert not signing.is_signed(replace(STATEMENT, **other), signature)


@pytest.mark.parametrize(
    "other", [{"code_hash": OTHER_HASH}, {"behaviour": uuid4()}, {"scope": ELSEWHERE}]
)
async def test_code_is_signed_under_its_own_hash_and_id_alone(other: Mapping[str, object]) -> None:
    with pytest.raises(VersionRefused, match=r"version 2 of record .* is not signed"):
        await keys().sign(replace(STATEMENT, **other))


async def test_only_a_trusted_key_of_the_registry_has_signed() -> None:
    signature = await keys().sign(STATEMENT)
    gateway = PublicKey("gateway", KEY.public.raw)
    assert not keys(gateway).is_signed(STATEMENT, signature)
    assert not keys().is_signed(STATEMENT, replace(signature, key_id="0" * 16))
    assert not keys().is_signed(STATEMENT, Signature(KEY.kid, "none"))
    assert keys(SigningKey.generate("registry").public, KEY.public).is_signed(STATEMENT, signature)


async def test_the_latest_valid_signatures_are_not_verified_again() -> None:
    CountingKey.count = 0
    signing = keys(CountingKey("registry", KEY.public.raw), most=2)
    versions = [replace(STATEMENT, number=number) for number in range(1, 4)]
    signed = [(version, await signing.sign(version)) for version in versions]
    for version, signature in (*signed, *signed[1:], signed[0]):
        assert signing.is_signed(version, signature)
    assert CountingKey.count == 4
    forged = replace(signed[0][1], value=signed[1][1].value)
    for _ in range(2):
        assert not signing.is_signed(versions[0], forged)
    assert CountingKey.count == 6


def test_the_mark_is_made_once_and_counts_as_made_without_a_file(tmp_path: Path) -> None:
    mark = SignedMark(tmp_path / "signed")
    assert not mark.is_set
    for _ in range(2):
        mark.set()
        assert mark.is_set
    assert (tmp_path / "signed").stat().st_mode & 0o777 == 0o600
    SignedMark(None).set()
    assert SignedMark(None).is_set
