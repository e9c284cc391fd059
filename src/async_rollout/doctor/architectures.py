"""The models that configurations here name, as their hub describes them, for estimates without it."""

from transformers import PretrainedConfig, Qwen2Config, Qwen3Config

_VOCABULARY = 151_936


def architecture(model_id: str) -> PretrainedConfig:
    """The configuration of a hub's model; KeyError if it is not one of those that are known here."""
    return {
        "Qwen/Qwen2.5-0.5B-Instruct": _qwen2_half_billion,
        "Qwen/Qwen3-4B-Instruct-2507": _qwen3_four_billion,
    }[model_id]()


def _qwen2_half_billion() -> Qwen2Config:
    return Qwen2Config(
        vocab_size=_VOCABULARY,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        max_position_embeddings=32_768,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        tie_word_embeddings=True,
    )


def _qwen3_four_billion() -> Qwen3Config:
    return Qwen3Config(
        vocab_size=_VOCABULARY,
        hidden_size=2560,
        intermediate_size=9728,
        num_hidden_layers=36,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=262_144,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 5e6},
        tie_word_embeddings=True,
    )
