"""Channels never block in a send, deliver whole messages in order, and tell when the peer is gone."""

import socket
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from async_rollout.channels import Channel, ChannelClosed, pair, poll


@pytest.fixture
def ends():
    ours, theirs = pair()
    yield ours, theirs
    ours.close()
    theirs.close()


def read_all(channel: Channel, n: int) -> list:
    messages = []
    while len(messages) < n:
        messages += channel.wait(timeout=5)
    return messages


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.lists(PLAIN, min_size=1, max_size=20))
@settings(max_examples=100)
def test_every_message_arrives_once_and_in_order(messages):
    """Also None and other false values, which are messages like any other."""
    ours, theirs = pair()
    for message in messages:
        ours.send(message)
    assert read_all(theirs, len(messages)) == messages
    assert theirs.receive() == []
    ours.close()
    theirs.close()


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=5), st.lists(st.integers(1, 200), min_size=1))
@settings(max_examples=100)
def test_messages_arrive_in_any_pieces(messages, cuts):
    """The kernel may cut the stream anywhere, also within a length."""
    ours, wire = pair()
    raw, end = socket.socketpair()
    theirs = Channel(end)
    for message in messages:
        ours.send(message)
    stream, received, at = wire._socket.recv(1 << 20), [], 0
    while at < len(stream):
        for cut in cuts:
            raw.sendall(stream[at : at + cut])
            at += cut
            received += theirs.receive()
    assert received == messages
    for each in (ours, wire, theirs):
        each.close()
    raw.close()


def test_send_never_blocks_on_a_full_pipe(ends):
    """Nobody reads; what the kernel does not take waits, and arrives once it is read."""
    ours, theirs = ends
    begun = time.monotonic()
    for number in range(50):
        ours.send((number, bytes(100_000)))
    assert time.monotonic() - begun < 1
    assert ours.unsent
    numbers = []
    while len(numbers) < 50:
        poll([theirs, ours], 1)  # reads one end, flushes the other
        numbers += [number for number, _ in theirs.receive()]
    assert numbers == list(range(50))
    assert not ours.unsent


def test_a_big_message_arrives_whole(ends):
    """Ten megabytes, while the other end drains."""
    ours, theirs = ends
    big = np.random.default_rng(0).integers(0, 255, 10_000_000, dtype=np.uint8)
    sender = threading.Thread(target=lambda: (ours.send(big), ours.drain()))
    sender.start()
    (received,) = read_all(theirs, 1)
    sender.join()
    assert np.array_equal(received, big)


def test_last_words_of_a_closed_peer_are_heard_first(ends):
    ours, theirs = ends
    theirs.send("last words")
    theirs.close()
    assert ours.receive() == ["last words"]
    with pytest.raises(ChannelClosed):
        ours.receive()
    with pytest.raises(ChannelClosed):
        ours.send("anyone?")


def test_last_words_survive_unread_mail(ends):
    """The kernel reports a reset to a peer that closed with something unread: its words come first."""
    ours, theirs = ends
    ours.send("never read")
    theirs.send("last words")
    theirs.close()
    assert ours.receive() == ["last words"]
    with pytest.raises(ChannelClosed):
        ours.receive()


def test_a_torn_message_of_a_closed_peer_is_none(ends):
    ours, theirs = ends
    theirs._socket.send(b"\x10\0\0\0\0\0\0\0half")
    theirs.close()
    assert ours.receive() == []
    with pytest.raises(ChannelClosed):
        ours.receive()


def test_poll_leaves_it_to_receive_to_tell_that_a_peer_is_gone(ends):
    """With bytes unsent, too: whoever waits for many channels is not the one to handle it."""
    ours, theirs = ends
    ours.send(bytes(5_000_000))
    assert ours.unsent
    theirs.close()
    poll([ours], 1)
    with pytest.raises(ChannelClosed):
        ours.receive()


def test_drain_ends_when_the_peer_is_gone(ends):
    ours, theirs = ends
    ours.send(bytes(5_000_000))
    theirs.close()
    with pytest.raises(ChannelClosed):
        ours.drain()


def test_wait_returns_at_its_timeout(ends):
    begun = time.monotonic()
    assert ends[0].wait(timeout=0.05) == []
    assert 0.04 < time.monotonic() - begun < 1


def test_a_channel_with_mail_is_not_handed_over(ends):
    ours, _ = ends
    ours.send(bytes(5_000_000))
    with pytest.raises(ValueError, match="unsent"):
        ours.__getstate__()
