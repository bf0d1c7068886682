"""Decoding of frames: independent of chunks, only frames with the secret come out."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_executor.domain.frames import ForgedOutput, Frame, FrameDecoder, encode

SECRET = "5ec2e7" * 5
MAX_BODY = 1000


def signed(body: bytes, origin: bytes = b"p", secret: str = SECRET) -> bytes:
    return encode(secret.encode() + origin + body)


def cut(data: bytes, at: list[int]) -> list[bytes]:
    """Split `data` into chunks that end at the given offsets."""
    places = [0, *sorted({place % (len(data) + 1) for place in at}), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


@given(
    bodies=st.lists(st.tuples(st.binary(max_size=300), st.sampled_from([b"h", b"p"])), max_size=8),
    at=st.lists(st.integers(0, 5000), max_size=20),
)
def test_frames_come_out_whole_whatever_the_chunks(
    bodies: list[tuple[bytes, bytes]], at: list[int]
) -> None:
    decoder = FrameDecoder(SECRET, MAX_BODY)
    stream = b"".join(signed(body, origin) for body, origin in bodies)
    frames = [frame for chunk in cut(stream, at) for frame in decoder.feed(chunk)]

    origins = {b"h": "host", b"p": "program"}
    assert [(frame.origin, frame.body) for frame in frames] == [
        (origins[origin], body) for body, origin in bodies
    ]


@given(forged=st.binary(min_size=5, max_size=200), before=st.integers(0, 3))
def test_no_bytes_without_the_secret_ever_become_a_frame(forged: bytes, before: int) -> None:
    decoder = FrameDecoder(SECRET, MAX_BODY)
    assert len(decoder.feed(signed(b"{}") * before)) == before
    try:
        assert decoder.feed(forged) == []
    except ForgedOutput:
        return
    with pytest.raises(ForgedOutput):  # pending bytes corrupt the host's next frame
        decoder.feed(signed(b"{}") * 200)


@pytest.mark.parametrize(
    "data",
    [
        signed(b"{}", secret="0" * 30),
        signed(b"{}", origin=b"x"),
        encode(b""),
        encode(SECRET.encode()),
        b"hello\n",
        b"\xff\xff\xff\xff",
    ],
    ids=["other secret", "no origin", "empty", "secret only", "text", "huge"],
)
def test_output_that_the_host_did_not_sign_is_forged(data: bytes) -> None:
    with pytest.raises(ForgedOutput):
        FrameDecoder(SECRET, MAX_BODY).feed(data)


def test_a_frame_waits_for_its_last_byte() -> None:
    decoder = FrameDecoder(SECRET, MAX_BODY)
    data = signed(b'{"kind":"ready"}', b"h")
    assert decoder.feed(data[:-1]) == []
    assert decoder.midway
    assert decoder.feed(data[-1:]) == [Frame("host", b'{"kind":"ready"}')]
    assert not decoder.midway


def test_an_inbound_frame_tells_for_whom_it_is_but_for_the_first() -> None:
    assert encode(b"{}") == b"\0\0\0\2{}"
    assert encode(b"stop", "host") == b"\0\0\0\5hstop"
    assert encode(b"{}", "program") == b"\0\0\0\3p{}"
