"""Versions with their signatures, and what is wrong with them."""

from dataclasses import replace

import pytest

from pml_registry.domain.signatures import (
    Fault,
    Signature,
    StoredVersion,
    explain,
    signature_of,
    version_in,
)
from services.registry.tests.support.builders import record

SIGNED = record("fs:read").model_copy(update={"key_id": "k1", "signature": "AAAA"})


def test_a_record_is_shown_with_a_version_and_its_signature() -> None:
    version = version_in(SIGNED)
    stated = version.statement
    assert (stated.scope, stated.record_id, stated.number) == (
        SIGNED.scope,
        SIGNED.record_id,
        SIGNED.version,
    )
    assert (stated.behaviour, stated.code_hash, stated.code) == (
        SIGNED.capability_id,
        SIGNED.code_hash,
        SIGNED.code,
    )
    assert version.signature == Signature("k1", "AAAA")


@pytest.mark.parametrize(("key_id", "value"), [(None, "AAAA"), ("k1", None), (None, None)])
def test_half_a_signature_is_none(key_id: str | None, value: str | None) -> None:
    assert signature_of(key_id, value) is None


@pytest.mark.parametrize(
    ("fault", "version", "why"),
    [
        ("unsigned", replace(version_in(SIGNED), signature=None), "it has no signature"),
        ("not_as_signed", version_in(SIGNED), "is not what the key k1 has signed"),
    ],
)
def test_a_version_that_must_not_run_is_named_with_the_reason(
    fault: Fault, version: StoredVersion, why: str
) -> None:
    told = explain(fault, version)
    assert told.startswith(f"version 1 of record {SIGNED.record_id} in acme.webapp is refused")
    assert why in told
