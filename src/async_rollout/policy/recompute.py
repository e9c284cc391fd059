"""Gradient checkpointing: layers keep their inputs and compute their activations again in the backward pass.

Always: losses and gradients are those without it; decoding is as without it, since only forwards
that are differentiated are affected.
"""

from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer


def recompute_activations(model: PreTrainedModel, name: str) -> None:
    """Turn it on, in place; copies of the model have it too. Raises ValueError naming a model that cannot."""
    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    if not layers:
        raise ValueError(
            f"train.gradient_checkpointing: true, but model.id = {name} ({type(model).__name__}) has "
            "no layers that can compute their activations again; set it to false"
        )
    model.activation_checkpointing_enable({"use_reentrant": False})
    for layer in layers:  # transformers asks for training mode; what lies in a layer stays in eval mode
        layer.training = True
