"""Parameters of which each rank holds a part (FSDP2), and the way from parts to wholes and back.

Always: a sharded model's parameters are parts except while one of its layers computes; gradients
are sums over the ranks, not means; states and weights that leave a rank are whole, so that what
is written does not tell how many trainers there were.
"""

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from async_rollout.policy.interface import Policy


class Unshardable(ValueError):
    """A model that cannot be cut into parts."""


def shard(model: torch.nn.Module, *heads: torch.nn.Module) -> None:
    """Cut a Hugging Face model, layer by layer, and `heads` beside it, in place.

    Tied weights stay tied: they lie in no layer, so the model's own unit holds them once.
    Raises Unshardable naming the model's class.
    """
    from torch.distributed.device_mesh import init_device_mesh  # these take seconds to load
    from torch.distributed.fsdp import fully_shard

    # A linear layer returns a view, which would matter only if somebody wrote to it in place.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")
    layers = _decoder_layers(model)
    device = next(model.parameters()).device
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    for module in (*layers, model, *heads):
        # The root too, which is kept whole by default: passes without a backward would leave it so.
        fully_shard(module, mesh=mesh, reshard_after_forward=True)
        module.set_gradient_divide_factor(1.0)
        module.set_force_sum_reduction_for_comms(True)  # gloo has no other reduction


def _decoder_layers(model: torch.nn.Module) -> Sequence[torch.nn.Module]:
    count = model.config.get_text_config().num_hidden_layers
    for child in model.base_model.children():
        if isinstance(child, torch.nn.ModuleList) and len(child) == count:
            return child
    raise Unshardable(
        f"train.parallel = fsdp2: {type(model).__name__} has no list of its {count} layers to cut it by; "
        "use replicate"
    )


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor of which this rank may hold a part; every rank must ask."""
    return tensor.full_tensor() if _is_part(tensor) else tensor


def part_like(value: Tensor, like: Tensor) -> Tensor:
    """This rank's part of a whole value, cut as `like` is; the value itself if that is whole."""
    if not _is_part(like):
        return value
    from torch.distributed.tensor import distribute_tensor

    value = value.to(like.device)
    return distribute_tensor(value, like.device_mesh, like.placements, src_data_rank=None)


def gathered(tree: Any, *, keep: bool) -> Any:
    """Nested dicts and lists with whole tensors in place of parts, in the CPU's memory.

    Every rank must ask; where not `keep`, parts become None: one rank is enough to hold them.
    """
    if isinstance(tree, dict):
        return {key: gathered(value, keep=keep) for key, value in tree.items()}
    if isinstance(tree, list):
        return [gathered(value, keep=keep) for value in tree]
    if not _is_part(tree):
        return tree
    value = tree.full_tensor()
    return value.cpu() if keep else None


def _is_part(thing: Any) -> bool:
    """True for a DTensor, which is known by its method: nobody else's module needs to be loaded."""
    return isinstance(thing, Tensor) and hasattr(thing, "full_tensor")


class Mirror:
    """A whole copy of a policy whose parameters are parts, on rank 0, in the CPU's memory."""

    def __init__(self, policy: Policy, *, keep: bool):
        """Copied from a policy that is not cut yet."""
        self._sharded = policy
        self._copy = copy.deepcopy(policy) if keep else None
        if self._copy is not None:
            self._copy.model.to("cpu")

    @torch.no_grad()
    def refresh(self) -> Policy | None:
        """The copy with the weights as they are, None where there is none; every rank must ask."""
        kept = {} if self._copy is None else self._copy.parameters()
        for name, parameter in self._sharded.parameters().items():
            value = whole(parameter)
            if name in kept:
                kept[name].copy_(value)
        return self._copy
