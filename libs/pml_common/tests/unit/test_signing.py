"""Keys of services: signatures, files, rotation."""

import hashlib
import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from pml_common.signing import KeyUnreadable, PublicKey, SigningKey, TrustedKeys

CONTENT = b"pml-test\nsomething stated"


def test_a_signature_binds_service_key_and_content() -> None:
    gateway, analyzer = SigningKey.generate("gateway"), SigningKey.generate("analyzer")
    trusted = TrustedKeys([gateway.public, analyzer.public])
    signature = gateway.sign(CONTENT)
    assert trusted.verify("gateway", gateway.kid, CONTENT, signature)
    assert not trusted.verify("analyzer", gateway.kid, CONTENT, signature)
    assert not trusted.verify("gateway", analyzer.kid, CONTENT, signature)
    assert not trusted.verify("gateway", gateway.kid, CONTENT + b" ", signature)
    assert not trusted.verify("gateway", gateway.kid, CONTENT, analyzer.sign(CONTENT))


def test_two_keys_share_a_secret_for_each_purpose_that_no_other_key_derives() -> None:
    gateway, registry, other = (SigningKey.generate(name) for name in ("gateway", "registry", "o"))
    secret = gateway.shared_with(registry.public, "test")
    assert registry.shared_with(gateway.public, "test") == secret
    assert len(secret) == 32
    others = [
        gateway.shared_with(registry.public, "another"),
        other.shared_with(registry.public, "test"),
        gateway.shared_with(other.public, "test"),
    ]
    assert len({secret, *others}) == 4


def test_a_public_key_is_the_point_of_the_private_key_in_the_form_of_x25519() -> None:
    """A vector: the point of RFC 8032, 7.1, test 1, in both forms."""
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    key = SigningKey("gateway", Ed25519PrivateKey.from_private_bytes(seed))
    scalar = X25519PrivateKey.from_private_bytes(hashlib.sha512(seed).digest()[:32])
    assert key.public.exchange.public_bytes_raw() == scalar.public_key().public_bytes_raw()


@pytest.mark.parametrize("signature", ["", "A", "é", "A" * 86, "A" * 200, "=" * 86, "+/" * 43])
def test_an_invalid_signature_does_not_verify(signature: str) -> None:
    key = SigningKey.generate("gateway")
    assert not TrustedKeys([key.public]).verify("gateway", key.kid, CONTENT, signature)


def test_a_signature_has_no_padding_and_fits_a_header() -> None:
    signature = SigningKey.generate("gateway").sign(CONTENT)
    assert len(signature) == 86
    assert set(signature) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_a_saved_key_is_the_same_key_and_private(tmp_path: Path) -> None:
    key, file = SigningKey.generate("learner"), tmp_path / "learner.pem"
    key.save(file)
    key.save(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["learner.pem"]
    loaded = SigningKey.load("learner", file)
    assert (loaded.kid, loaded.public) == (key.kid, key.public)
    assert loaded.sign(CONTENT) == key.sign(CONTENT)  # Ed25519 needs no randomness


def test_a_key_file_that_cannot_be_used_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "gateway.pem"
    with pytest.raises(KeyUnreadable, match=r"gateway\.pem.*No such file.*openssl genpkey"):
        SigningKey.load("gateway", file)
    file.write_text("nonsense")
    with pytest.raises(KeyUnreadable, match="openssl genpkey"):
        SigningKey.load("gateway", file)
    pem = generate_private_key(SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(pem)
    with pytest.raises(KeyUnreadable, match="no Ed25519 key"):
        SigningKey.load("gateway", file)


def test_while_a_key_is_replaced_both_are_trusted() -> None:
    old, new = SigningKey.generate("gateway"), SigningKey.generate("gateway")
    trusted = TrustedKeys([old.public]).with_key(new.public)
    assert trusted.verify("gateway", old.kid, CONTENT, old.sign(CONTENT))
    assert trusted.verify("gateway", new.kid, CONTENT, new.sign(CONTENT))
    after = TrustedKeys([key for key in trusted.keys if key.kid != old.kid])
    assert not after.verify("gateway", old.kid, CONTENT, old.sign(CONTENT))


def test_trusted_keys_survive_their_file(tmp_path: Path) -> None:
    keys = [SigningKey.generate(name).public for name in ("gateway", "gateway", "executor")]
    file = tmp_path / "trusted.json"
    file.write_text(TrustedKeys(keys).to_json())
    assert TrustedKeys.load(file).keys == tuple(keys)


def test_a_public_key_is_readable_by_other_tools() -> None:
    key = SigningKey.generate("gateway").public
    loaded = serialization.load_pem_public_key(key.pem.encode())
    raw = loaded.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    assert PublicKey("gateway", raw) == key


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kid": "0" * 16}, "has the id"),
        ({"key": "AAAA"}, "3 bytes"),
        ({"key": "%%%%"}, "cannot be used"),
        ({"surplus": 1}, "surplus"),
    ],
)
def test_a_file_of_trusted_keys_is_read_strictly(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    file = tmp_path / "trusted.json"
    content = json.loads(TrustedKeys([SigningKey.generate("gateway").public]).to_json())
    content["keys"][0].update(change)
    file.write_text(json.dumps(content))
    with pytest.raises(KeyUnreadable, match=said):
        TrustedKeys.load(file)


def test_a_missing_file_of_trusted_keys_says_so(tmp_path: Path) -> None:
    with pytest.raises(KeyUnreadable, match="No such file"):
        TrustedKeys.load(tmp_path / "trusted.json")
