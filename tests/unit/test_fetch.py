"""Models of the hub, which is replaced: no network here; and models that come as GGUF files."""

from fnmatch import fnmatch
from pathlib import Path

import pytest
import torch

from async_rollout.cli import main
from async_rollout.commands import fetch as command
from async_rollout.config.errors import ConfigError
from async_rollout.config.load import load_sweep
from async_rollout.policy.gguf import convert_gguf


def test_a_gguf_file_is_unpacked_and_a_hub_id_is_not(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("async_rollout.policy.gguf.convert_gguf", lambda *paths: asked.append(paths))
    command.fetch("models/some.gguf", tmp_path)
    assert asked == [(Path("models/some.gguf"), tmp_path)]


def test_a_hub_that_cannot_be_reached_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert main(["fetch", "nobody/nothing", "--out", str(tmp_path / "model")]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "model.id = 'nobody/nothing': cannot be fetched (LocalEntryNotFoundError" in error


def hub(monkeypatch, *files):
    def download(model, local_dir, allow_patterns):
        for name in files:
            if any(fnmatch(name, pattern) for pattern in allow_patterns):
                (local_dir / name).touch()

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)


@pytest.mark.parametrize(
    ("there", "weights"),
    [
        (["model.safetensors", "pytorch_model.bin"], ["model.safetensors"]),
        (["pytorch_model.bin", "tf_model.h5", "optimizer.bin"], ["pytorch_model.bin"]),
        (
            ["pytorch_model-1-of-1.bin", "pytorch_model.bin.index.json"],
            ["pytorch_model-1-of-1.bin", "pytorch_model.bin.index.json"],
        ),
    ],
)
def test_weights_come_as_safetensors_or_else_as_bin_files(monkeypatch, tmp_path, there, weights):
    hub(monkeypatch, "config.json", *there)
    command.fetch("owner/name", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", *weights]


def test_a_model_without_weights_is_named_and_leaves_nothing_that_looks_like_one(monkeypatch, tmp_path):
    hub(monkeypatch, "config.json", "tokenizer.json", "tf_model.h5", "pytorch_model.bin.index.json")
    with pytest.raises(ConfigError, match=r"model\.id = 'owner/name': has no weights that can be read"):
        command.fetch("owner/name", tmp_path)
    assert not (tmp_path / "config.json").exists()


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.gguf: no such GGUF file"):
        convert_gguf(tmp_path / "absent.gguf", tmp_path / "out")


@pytest.mark.long
def test_an_unpacked_file_loads_as_any_model(tmp_path):
    """A tiny Llama, written as GGUF by the `gguf` package, with weights of 4 bits and more."""
    gguf = pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    writer = gguf.GGUFWriter(tmp_path / "tiny.gguf", "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(32)
    writer.add_vocab_size(260)
    tokens = ["<unk>", "<s>", "</s>", "a", *(f"<0x{i:02X}>" for i in range(256))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([2, 3, 3, 1, *[6] * 256])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    torch.manual_seed(0)
    shapes = {"token_embd": (260, 64), "output": (260, 64)}
    shapes |= {f"blk.0.attn_{name}": (64, 64) for name in ("q", "k", "v", "output")}
    shapes |= {f"blk.0.ffn_{name}": (64, 64) for name in ("gate", "up", "down")}
    exact = {}
    for name, shape in shapes.items():
        values = torch.randn(shape).numpy()
        packed = gguf.quantize(values, gguf.GGMLQuantizationType.Q4_1)
        exact[name] = gguf.dequantize(packed, gguf.GGMLQuantizationType.Q4_1)
        writer.add_tensor(f"{name}.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", torch.ones(64).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    convert_gguf(tmp_path / "tiny.gguf", tmp_path / "model")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    assert not hasattr(model.config, "quantization_config")
    found = model.state_dict()["model.layers.0.mlp.up_proj.weight"]
    assert torch.allclose(found, torch.from_numpy(exact["blk.0.ffn_up"]), rtol=1e-2)
    assert AutoTokenizer.from_pretrained(tmp_path / "model").eos_token_id == 2


def test_the_configuration_for_it_is_valid():
    sweep = load_sweep(Path(__file__).parents[2] / "config" / "smollm2.yaml")
    assert (sweep.model.dtype, sweep.datasets) == ("bfloat16", ["coding"])
