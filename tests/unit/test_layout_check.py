import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, PreTrainedModel, Qwen2Config
from transformers.models.qwen2 import modeling_qwen2

from async_rollout.policy import masks
from async_rollout.policy.forward import Forward
from async_rollout.policy.layout_check import UnfitModel, check_layout, refuse_unfit
from tiny_policy import tiny_model

SMALL = {
    "vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 48, "max_position_embeddings": 64,
    "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip


def _model(config: object) -> PreTrainedModel:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("kind", ["qwen2", "qwen2-eager", "gpt2"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_full_attention_models_fit(kind: str, dtype: torch.dtype) -> None:
    model = tiny_model(kind).eval().to(dtype)
    refuse_unfit(model, kind)
    check_layout(Forward(model), kind)


def test_llama_fits() -> None:
    model = _model(LlamaConfig(**SMALL))
    refuse_unfit(model, "llama")
    check_layout(Forward(model), "llama")


@pytest.mark.parametrize(
    "config",
    [
        MistralConfig(**SMALL, sliding_window=8),
        Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=8, max_window_layers=1),
    ],
)
def test_sliding_windows_are_refused_by_name(config: object) -> None:
    with pytest.raises(UnfitModel, match=r"model\.id = some/model .*(slid)"):
        refuse_unfit(_model(config), "some/model")


def test_a_model_without_positions_is_refused_by_name() -> None:
    class NoPositions(torch.nn.Module):
        def forward(self, input_ids, attention_mask=None, cache=None, logits_to_keep=0):
            raise AssertionError("not called")

    with pytest.raises(UnfitModel, match="takes no position_ids"):
        refuse_unfit(NoPositions(), "some/model")


def test_a_model_that_ignores_positions_fails_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model().eval()
    rotary = modeling_qwen2.Qwen2RotaryEmbedding.forward
    monkeypatch.setattr(
        modeling_qwen2.Qwen2RotaryEmbedding,
        "forward",
        lambda self, x, position_ids: rotary(self, x, position_ids * 0 + torch.arange(position_ids.shape[1])),
    )
    with pytest.raises(UnfitModel, match="ragged batch are off by"):
        check_layout(Forward(model), "some/model")


def test_a_mask_that_shows_holes_fails_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model().eval()
    monkeypatch.setattr(
        masks, "newest", lambda lengths, width: torch.ones(len(lengths), 1, 1, width, dtype=torch.bool)
    )
    with pytest.raises(UnfitModel, match="ragged batch are off by"):
        check_layout(Forward(model), "some/model")
