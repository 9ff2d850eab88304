from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.checksum import crc32
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.primitives import INT32
from pylogctl.comparison import Difference

MAGIC0 = INT32.pack(5 + 3) + b"\x00" + crc32(b"old").to_bytes(4, "big") + b"old"

payloads = st.lists(st.sampled_from([b"", b"a", b"b", b"cc", b"dd", b"eee"]), max_size=20)
codecs = st.sampled_from([Codec.NONE, Codec.GZIP])


@given(payloads, payloads, codecs, codecs)
def test_difference_when_all_is_read_then_is_that_of_the_multisets(
    source: list[bytes], target: list[bytes], source_codec: Codec, target_codec: Codec
) -> None:
    difference = Difference()
    here, there = build_set(source, source_codec), build_set(target, target_codec)

    difference.add(difference.source, here)
    difference.add(difference.target, there)

    assert difference.missing_count == (Counter(source) - Counter(target)).total()
    assert difference.surplus_count == (Counter(target) - Counter(source)).total()
    assert difference.source.message_count == len(source)
    assert difference.target.message_count == len(target)


@given(payloads, st.randoms(use_true_random=False))
def test_digest_when_the_order_differs_then_is_the_same(
    source: list[bytes], chance: object
) -> None:
    target = list(source)
    chance.shuffle(target)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    difference = Difference()
    here, there = build_set(source), build_set(target)
    difference.add(difference.source, here)
    difference.add(difference.target, there)

    assert difference.source.checksum == difference.target.checksum
    assert (difference.missing_count, difference.surplus_count) == (0, 0)


def test_difference_when_entries_are_of_the_old_magic_then_their_payloads_count() -> None:
    difference = Difference()
    new = build_set([b"old"])

    difference.add(difference.source, MAGIC0)
    difference.add(difference.target, new)

    assert (difference.missing_count, difference.surplus_count) == (0, 0)
