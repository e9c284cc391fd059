"""Every kind of mistake is told with its key, its value and the fix."""

from pathlib import Path

import pytest

from async_rollout.config.errors import ConfigError
from async_rollout.config.load import load_sweep, run_from_json, sweep_from_dict

SINGLE = {"batch.group_size": 1, "advantage.name": "batch"}
GROUPED = {"batch.group_size": 8}
FSDP2 = {"train": {"parallel": "fsdp2"}}


def message(content: dict) -> str:
    with pytest.raises(ConfigError) as caught:
        sweep_from_dict({"experiment": "x"} | content)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "key", "value", "fix"),
    [
        ({"trian": {"updates": 3}}, "trian", "{'updates': 3}", "write train"),
        ({"train": {"updats": 3}}, "train.updats", "3", "write train.updates"),
        ({"train": {"lr": 3}}, "train.lr", "3", "optim.lr"),
        ({"zzz": 3}, "zzz", "3", "known here: model, warm_start"),
        ({"experiment": "X y"}, "experiment", "'X y'", "matches"),
        ({"experiment": "latest"}, "experiment", "'latest'", "another name"),
        ({"train": {"updates": "many"}}, "train.updates", "'many'", "write a whole number"),
        ({"train": {"updates": True}}, "train.updates", "True", "write a number"),
        ({"optim": {"lr": "fast"}}, "optim.lr", "'fast'", "write a number"),
        ({"optim": {"lr": float("nan")}}, "optim.lr", "nan", "write a finite number"),
        ({"optim": {"grad_clip": float("inf")}}, "optim.grad_clip", "inf", "write a finite number"),
        ({"model": {"trust_remote_code": "maybe"}}, "model.trust_remote_code", "'maybe'", "true or false"),
        ({"model": {"id": 7}}, "model.id", "7", "write text"),
        ({"train": {"updates": 0}}, "train.updates", "0", "a value at least 1"),
        ({"sampling": {"top_p": 1.5}}, "sampling.top_p", "1.5", "a value at most 1"),
        ({"kl": 3}, "kl", "3", "write a mapping"),
        ({"seeds": 0}, "seeds", "0", "write a list"),
        ({"seeds": []}, "seeds", "[]", "list at least 1"),
        ({"seeds": ["01", 1]}, "seeds", "['01', 1]", "list each value once"),
        ({"seeds": [-1]}, "seeds.0", "-1", "a whole number >= 0"),
        ({"seeds": [True]}, "seeds.0", "True", "a whole number >= 0"),
        ({"seeds": [1.5]}, "seeds.0", "1.5", "a whole number >= 0"),
        ({"staleness_k": [-1]}, "staleness_k.0", "-1", '"inf" for no bound'),
        ({"decoupled": [2]}, "decoupled.0", "2", "1 (decoupled objective) or 0 (live)"),
        ({"modes": ["asink"]}, "modes.0", "'asink': unknown", "async"),
        ({"modes": ["snc"]}, "modes.0", "'snc': unknown", "write sync"),
        ({"algorithms": ["gpro"]}, "algorithms.0", "'gpro': unknown", "write grpo"),
        ({"datasets": ["reasoning_gym"]}, "datasets.0", "no such dataset", "reasoning_gym:NAME"),
        ({"datasets": ["srt"]}, "datasets.0", "'srt': no such dataset", "one of sort, gsm8k"),
        ({"datasets": ["jsonl:no/such.jsonl"]}, "datasets.0", "no such file", "the path of a JSONL file"),
        ({"objective": {"name": "ppo"}}, "objective.name", "'ppo'", "'live', 'behavior', 'decoupled', 'dis'"),
        ({"rollout": {"devices": ["gpu"]}}, "rollout.devices.0", "'gpu'", "cuda"),
        ({"train": {"devices": ["cpu", "cpu"]}}, "train.devices", "['cpu', 'cpu']", "train.workers: 2"),
        (
            {"train": {"devices": ["cuda:0"], "workers": 2}},
            "train.devices",
            "a GPU each",
            "2 different devices",
        ),
        (
            {"train": {"devices": ["cuda", "cuda:0"], "workers": 2}},
            "train.devices",
            "two ranks",
            "workers: 1",
        ),
        ({"train": {"devices": ["cpu", "cuda:0"], "workers": 2}}, "train.devices", "one kind", "only cpu"),
        (FSDP2 | {"model": {"backend": "tabular"}}, "train.parallel", "'fsdp2': model.backend", "causal_lm"),
        (FSDP2 | {"model": {"autocast": "float16"}}, "train.parallel", "loss scaling", "bfloat16"),
        ({"batch": {"group_size": 1}}, "batch.group_size", "1: group advantages", "single_dis, running_mean"),
        ({"batch": {"minibatches": 129}}, "batch.minibatches", "129", "128 or less"),
        ({"sampling": {"top_p": 0.9}}, "sampling.top_p", "0.9", "sampling.allow_biased: true"),
        ({"sampling": {"top_k": 5}}, "sampling.top_k", "5", "sampling.allow_biased: true"),
        ({"warm_start": {"kv_heads": 3}}, "warm_start.kv_heads", "3", "a divisor of 4"),
        ({"warm_start": {"hidden_size": 60}}, "warm_start.hidden_size", "60", "a multiple of 8"),
        ({"optim": {"warmup_updates": 101}}, "optim.warmup_updates", "101", "train.updates or less"),
        ({"advantage": {"name": "batch"}}, "advantage.name", "'batch': algorithm grpo sets", "in an arm"),
        ({"arms": {"a": {"objective.nam": 1}}}, "arms.a.objective.nam", "1", "write objective.name"),
        ({"arms": {"a": {"nonsense": 1}}}, "arms.a.nonsense", "1", "known here: model"),
        ({"arms": {"a": {"seeds": [1]}}}, "arms.a.seeds", "[1]: belongs to the whole sweep", "blocks"),
        ({"arms": {"a": {"report.k_headline": 1}}}, "arms.a.report.k_headline", "1", "blocks"),
        ({"arms": {"a": {"train": {"updates": 1}}}}, "arms.a.train", "a block", "write train.KEY"),
        ({"arms": {"a": {"batch.group_size": 1}}}, "arms.a.batch.group_size", "1", "2 or more"),
        ({"arms": {"a": {"optim.lr": "x"}}}, "arms.a.optim.lr", "'x'", "write a number"),
        ({"arms": {"a": {"optim.lr": "1e-4"}}}, "arms.a", "changes nothing", "remove the arm"),
        ({"arms": {"a": {}}}, "arms.a", "changes nothing", "remove the arm"),
        ({"arms": {"a": {"objective.name": "live"}}, "modes": ["areal"]}, "arms.a", "base arm", "remove"),
        ({"arms": {"a": {"kl.coef": 1}, "b": {"kl.coef": 1.0}}}, "arms.b", "one of arm a", "remove"),
        ({"arms": {"A b": {"kl.coef": 1}}}, "arms.A b", "not in the right form", "matches"),
        ({"arms": {"a": SINGLE}}, "arms.a.batch.group_size", "it is no GRPO", "single_dis (batch"),
        (
            {"algorithms": ["grpo_dis"], "arms": {"a": SINGLE}},
            "arms.a.batch.group_size",
            "grpo_dis",
            "by its name",
        ),
        ({"algorithms": ["single_dis"], "arms": {"a": GROUPED}}, "arms.a.batch.group_size", "8", "grpo_dis"),
        ({"arms": {"grpo": {"kl.coef": 1}}}, "arms", "the name of an algorithm", "another name"),
        ({"arms": {"base": {"kl.coef": 1}}}, "arms", "the arm without overrides", "another name"),
        (
            {"modes": ["lagged"], "staleness_k": [0, "inf"]},
            "staleness_k",
            "exactly K",
            "{mode: lagged, k: inf}",
        ),
        ({"exclude": [{"mode": "lagged"}]}, "exclude.0", "leaves no cell out", "remove it"),
        ({"exclude": [{"mod": "areal"}]}, "exclude.0", "mod is not an axis", "write mode"),
        ({"exclude": [{"k": -1}]}, "exclude.0.k.0", "-1", "a whole number >= 0"),
    ],
)
def test_a_mistake_names_key_value_and_fix(content: dict, key: str, value: str, fix: str) -> None:
    line = next(row for row in message(content).splitlines() if row.strip().startswith(f"{key} = "))
    problem, _, advice = line.partition("Fix: ")
    assert value in problem
    assert fix in advice


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        sweep_from_dict({"seeds": [], "train": {"updats": 1, "threads": 0}})
    assert [p.key for p in caught.value.problems] == ["train.threads", "train.updats", "experiment", "seeds"]
    assert str(caught.value).startswith("config: 4 problems\n")


def test_biased_sampling_may_be_accepted() -> None:
    sampling = {"top_p": 0.9, "top_k": 5, "allow_biased": True}
    assert sweep_from_dict({"experiment": "x", "sampling": sampling}).sampling.top_k == 5


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "words.jsonl").touch()
    datasets = [f"jsonl:{tmp_path}/{folder}/words.jsonl" for folder in ("a", "b")]
    assert "another dataset is called words too. Fix: rename the file" in message({"datasets": datasets})


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("experiment: a\nseeds: [0]\nseeds: [1]\n", 3, "the key seeds is there twice"),
        ("experiment: a\ntrain:\n  updates: 1\n  updates: 2\n", 4, "the key updates is there twice"),
        ("experiment: a\nseeds: [010]\n", 2, "010 reads as 8 in YAML"),
        ("experiment: a\nseeds: [0\n", 3, "expected"),
        ("experiment: a\n\tseeds: [0]\n", 2, "cannot start any token"),
    ],
)
def test_a_bad_line_of_yaml_is_named(tmp_path: Path, text: str, line: int, what: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_sweep(path)
    assert f"{path}:{line}" in str(caught.value)
    assert what in str(caught.value)


def test_a_file_that_is_not_there_or_no_mapping(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_sweep(tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(ConfigError, match="write a mapping"):
        load_sweep(tmp_path / "list.yaml")


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("train.updates", "write key.path=value"),
        (".updates=3", "write key.path=value"),
        ("seeds.0=3", "seeds has a value, not keys"),
        ("train.updats=3", "write train.updates"),
        ("train.updates=[", "correct this line"),
    ],
)
def test_a_bad_override_is_named(tmp_path: Path, override: str, what: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("experiment: x\nseeds: [0]\n")
    with pytest.raises(ConfigError, match=what.replace("[", r"\[")):
        load_sweep(path, [override])


def test_a_run_that_is_not_json_or_not_resolved() -> None:
    with pytest.raises(ConfigError, match="not JSON"):
        run_from_json("{")
    axes = '"experiment":"x","dataset":"sort","algorithm":"grpo","arm":"","decoupled":1,"seed":0'
    with pytest.raises(ConfigError) as caught:
        run_from_json(f'{{{axes},"mode":"sync","k":4}}')
    assert {p.key for p in caught.value.problems} == {"objective.name", "k"}
