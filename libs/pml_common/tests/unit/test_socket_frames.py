"""Frames on a socket, cut anywhere, and bytes that are none."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.bus.codec import Envelope
from pml_common.bus.sockets.frames import (
    Frame,
    FrameError,
    FrameReader,
    Kind,
    decode_envelope,
    encode_envelope,
    encode_frame,
)

FRAMES = st.builds(Frame, st.sampled_from(Kind), st.integers(0, 2**64 - 1), st.binary(max_size=200))
ENVELOPES = st.builds(
    Envelope, st.text(), st.binary(max_size=200), st.dictionaries(st.text(), st.text())
)


@given(st.lists(FRAMES, max_size=6), st.lists(st.integers(0, 1500)))
def test_frames_are_read_whole_wherever_the_bytes_are_cut(
    sent: list[Frame], cuts: list[int]
) -> None:
    data = b"".join(encode_frame(*frame) for frame in sent)
    at = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    reader = FrameReader(200)
    parts = (data[begin:end] for begin, end in pairwise(at))
    assert [frame for part in parts for frame in reader.feed(part)] == sent


def test_a_frame_that_is_too_long_is_refused_before_it_has_come() -> None:
    reader = FrameReader(10)
    assert reader.feed(encode_frame(Kind.PING, 0, b"0123456789")) != []
    with pytest.raises(FrameError, match="11 bytes; at most 10"):
        reader.feed(encode_frame(Kind.PING, 0, b"01234567890")[:13])


def test_a_frame_of_an_unknown_kind_is_refused() -> None:
    frame = bytearray(encode_frame(Kind.PING))
    frame[4] = 99
    with pytest.raises(FrameError, match="unknown kind 99"):
        FrameReader(10).feed(bytes(frame))


@given(ENVELOPES)
def test_an_envelope_is_read_as_it_was_written(envelope: Envelope) -> None:
    assert decode_envelope(encode_envelope(envelope)) == envelope


@given(st.binary(max_size=60))
def test_garbage_is_no_envelope(payload: bytes) -> None:
    try:
        found = decode_envelope(payload)
    except FrameError:
        return
    head = json.loads(payload[4 : len(payload) - len(found.data)])
    assert head[0] == found.subject


@pytest.mark.parametrize(
    "head", ["{}", "[]", '["a"]', "[1, {}]", '["a", []]', '["a", {"b": 1}]', "nothing"]
)
def test_an_envelope_has_a_subject_and_headers(head: str) -> None:
    with pytest.raises(FrameError):
        decode_envelope(len(head).to_bytes(4) + head.encode())


def test_an_envelope_may_not_end_within_its_head() -> None:
    whole = encode_envelope(Envelope("a", b"", {}))
    with pytest.raises(FrameError):
        decode_envelope(whole[:-1])
    with pytest.raises(FrameError, match="without a head"):
        decode_envelope(b"\0\0")
