"""Copies between a policy's parameters and a buffer of the weight store (torch side)."""

import mmap

import torch

from async_rollout.runtime.layout import WeightLayout, lay_out


def layout_of(parameters: dict[str, torch.nn.Parameter]) -> WeightLayout:
    """Layout of these parameters, in their order."""
    return lay_out([(n, tuple(p.shape), str(p.dtype).removeprefix("torch.")) for n, p in parameters.items()])


class Transfer:
    """Knows where each parameter lies; views of a buffer are made once and kept."""

    def __init__(self, parameters: dict[str, torch.nn.Parameter]):
        self.layout = layout_of(parameters)
        self._parameters = list(parameters.values())
        self._views: dict[int, list[torch.Tensor]] = {}

    def copy_in(self, buffer: mmap.mmap) -> None:
        """Parameters → buffer."""
        with torch.no_grad():
            for view, parameter in zip(self._of(buffer), self._parameters, strict=True):
                view.copy_(parameter)

    def copy_out(self, buffer: mmap.mmap) -> None:
        """Buffer → parameters, in place."""
        with torch.no_grad():
            for view, parameter in zip(self._of(buffer), self._parameters, strict=True):
                parameter.copy_(view)

    def _of(self, buffer: mmap.mmap) -> list[torch.Tensor]:
        if id(buffer) not in self._views:
            self._views[id(buffer)] = [
                torch.frombuffer(buffer, dtype=getattr(torch, e.dtype), count=e.items, offset=e.offset).view(
                    e.shape
                )
                for e in self.layout.entries
            ]
        return self._views[id(buffer)]
