"""GGUF files as Hugging Face directories: weights unpacked to dense ones (extra `gguf`).

A file quantized to 4 bits gives a model of that precision in a larger type: dequantized 4-bit.
"""

from pathlib import Path


def convert_gguf(source: Path, directory: Path) -> None:
    """Write model (bfloat16) and tokenizer of a GGUF file to `directory`.

    Raises FileNotFoundError if there is no such file, ImportError if the extra is missing.
    """
    if not source.is_file():
        raise FileNotFoundError(f"{source}: no such GGUF file")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    place = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    how = GgufConfig(gguf_file=source.name, dequantize=True)
    packed = AutoModelForCausalLM.from_pretrained(**place, quantization_config=how, dtype=torch.bfloat16)
    config = packed.config.to_dict()
    config.pop("quantization_config", None)  # transformers saves no model that has one
    plain = AutoModelForCausalLM.from_config(type(packed.config).from_dict(config), dtype=torch.bfloat16)
    plain.load_state_dict(packed.state_dict())
    plain.generation_config = packed.generation_config
    AutoTokenizer.from_pretrained(**place).save_pretrained(directory)
    plain.save_pretrained(directory)
