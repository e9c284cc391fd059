"""Copies between a policy's parameters and a buffer of the weight store (torch side).

The parameters are moved into one piece of memory that is laid out as the buffer is, so that
a publication is a single copy: that is about twice as fast as one for each parameter, since
only large copies go past the caches, and it takes one call where there is a device between.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from async_rollout.runtime.layout import Buffer, Entry, WeightLayout, lay_out


def layout_of(parameters: dict[str, torch.nn.Parameter]) -> WeightLayout:
    """Layout of these parameters, in their order."""
    return lay_out([(n, tuple(p.shape), str(p.dtype).removeprefix("torch.")) for n, p in parameters.items()])


class Transfer:
    """Owns the memory that the parameters live in from now on; they stay the same objects."""

    def __init__(self, parameters: dict[str, torch.nn.Parameter]):
        """All parameters must be on one device."""
        self.layout = layout_of(parameters)
        device = next(iter(parameters.values())).device
        self._flat = torch.zeros(self.layout.size, dtype=torch.uint8, device=device)
        for entry, parameter in zip(self.layout.entries, parameters.values(), strict=True):
            parameter.data = _part(self._flat, entry).copy_(parameter.data)

    def copy_in(self, buffer: Buffer) -> None:
        """Parameters → buffer."""
        if self._flat.device.type == "cpu":
            np.copyto(_bytes(buffer), self._flat.numpy())  # faster than torch's own copy
        else:
            torch.from_numpy(_bytes(buffer)).copy_(self._flat)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Whatever the block does to the parameters, they are as before when it ends."""
        before = self._flat.clone()
        try:
            yield
        finally:
            self._flat.copy_(before)

    def copy_out(self, buffer: Buffer) -> None:
        """Buffer → parameters, in place."""
        if self._flat.device.type == "cpu":
            np.copyto(self._flat.numpy(), _bytes(buffer))
        else:
            self._flat.copy_(torch.from_numpy(_bytes(buffer)))


def _bytes(buffer: Buffer) -> np.ndarray:
    return np.frombuffer(buffer, np.uint8)


def _part(flat: torch.Tensor, entry: Entry) -> torch.Tensor:
    dtype = getattr(torch, entry.dtype)
    return flat[entry.offset : entry.offset + entry.size].view(dtype).view(entry.shape)
