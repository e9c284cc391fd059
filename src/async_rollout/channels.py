"""A two-way channel between two processes: one socket pair, nothing shared with a third.

A killed peer can leave no lock behind: its end closes and `receive` raises ChannelClosed.
`send` never blocks; what the kernel does not take waits in the outbox until `flush`.
"""

import pickle
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

_HEADER = struct.Struct("<Q")
_CHUNK = 1 << 20


class ChannelClosed(Exception):
    """The other end is gone."""


class Channel:
    """One end of a pair. Can be handed to a process that is being spawned."""

    def __init__(self, end: socket.socket):
        end.setblocking(False)
        self._socket = end
        self._inbox = bytearray()
        self._outbox: deque[memoryview] = deque()

    def __getstate__(self) -> socket.socket:
        if self._inbox or self._outbox:
            raise ValueError("a channel with unread or unsent messages cannot be handed over")
        return self._socket

    def __setstate__(self, end: socket.socket) -> None:
        self.__init__(end)

    def fileno(self) -> int:
        """Descriptor for poll()."""
        return self._socket.fileno()

    @property
    def unsent(self) -> bool:
        """True while the outbox holds something that the kernel did not take yet."""
        return bool(self._outbox)

    def send(self, message: Any) -> None:
        """Queue a message and send what the kernel takes; never blocks."""
        body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self._outbox.append(memoryview(_HEADER.pack(len(body)) + body))
        self.flush()

    def flush(self) -> None:
        """Send what the kernel takes now. Raises ChannelClosed if the peer is gone."""
        while self._outbox:
            try:
                sent = self._socket.send(self._outbox[0])
            except BlockingIOError:
                return
            except OSError as error:
                raise ChannelClosed from error
            if sent == len(self._outbox[0]):
                self._outbox.popleft()
            else:
                self._outbox[0] = self._outbox[0][sent:]

    def receive(self) -> list[Any]:
        """All messages that have arrived, perhaps none. Raises ChannelClosed after the last."""
        closed = self._read()
        messages = list(self._take())
        if closed and not messages:
            raise ChannelClosed
        return messages

    def wait(self, timeout: float | None = None) -> list[Any]:
        """Flush, then messages as soon as there are any; an empty list after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            if messages := self.receive():
                return messages
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return []
            poll([self], left)

    def drain(self) -> None:
        """Block until everything is sent. Raises ChannelClosed if the peer is gone."""
        while self._outbox:
            poll([self], None, read=False)
            self.flush()

    def hang_up(self) -> None:
        """The other end finds this one gone; it stays open here for what is still to be read."""
        with suppress(OSError):  # the other end is gone already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _read(self) -> bool:
        while True:
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                return False
            except ConnectionResetError:
                return True
            if not data:
                return True
            self._inbox += data
            if len(data) < _CHUNK:
                return False

    def _take(self) -> Iterator[Any]:
        """Every whole message in the inbox."""
        while len(self._inbox) >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._inbox)
            end = _HEADER.size + size
            if len(self._inbox) < end:
                return
            message = pickle.loads(memoryview(self._inbox)[_HEADER.size : end])
            del self._inbox[:end]
            yield message


def pair() -> tuple[Channel, Channel]:
    """Both ends of a new channel."""
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs)


def poll(channels: Sequence[Any], timeout: float | None, *, read: bool = True) -> None:
    """Wait until one of these can be read or takes unsent bytes, and flush those that do.

    Anything with `fileno()` may be waited on; only channels are written. `timeout` in
    seconds, None waits without limit. A peer that is gone ends the wait and is no error here:
    the channel's own `receive` tells, after the peer's last words.
    """
    poller = select.poll()
    by_descriptor = {}
    for channel in channels:
        writes = isinstance(channel, Channel) and channel.unsent
        poller.register(channel.fileno(), (select.POLLIN if read else 0) | (select.POLLOUT if writes else 0))
        by_descriptor[channel.fileno()] = channel
    for descriptor, event in poller.poll(None if timeout is None else max(0.0, timeout) * 1000):
        if event & (select.POLLOUT | select.POLLERR | select.POLLHUP):
            channel = by_descriptor[descriptor]
            if isinstance(channel, Channel) and channel.unsent:
                with suppress(ChannelClosed):
                    channel.flush()
