"""Which cells a sweep has, what they are called, and what each one runs."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.config.cells import (
    Cell,
    canonical_json,
    cell_named,
    cells,
    config_hash,
    inert_warnings,
    resolve,
)
from async_rollout.config.errors import ConfigError
from async_rollout.config.load import run_from_json, sweep_from_dict
from async_rollout.config.run import RunConfig
from async_rollout.config.sweep import SweepConfig

BEHAVIOR = {"behavior": {"objective.name": "behavior"}}


def sweep(**content: object) -> SweepConfig:
    return sweep_from_dict({"experiment": "x", "seeds": [0], **content})


def ids(**content: object) -> list[str]:
    return [cell.id for cell in cells(sweep(**content))]


def only(**content: object) -> RunConfig:
    one = sweep(**{"modes": ["areal"], "staleness_k": [4], "decoupled": [1], **content})
    return resolve(one, cells(one)[0])


def test_every_combination_of_areal_is_a_cell() -> None:
    assert ids(modes=["areal"], staleness_k=[0, "inf"], seeds=[1, 2]) == [
        f"areal-grpo-k{k}-dec{dec}-s{seed}" for k in (0, "inf") for dec in (0, 1) for seed in (1, 2)
    ]


def test_sync_has_one_cell_per_algorithm_arm_and_seed() -> None:
    assert ids(modes=["sync"], arms=BEHAVIOR, seeds=[0, 3]) == [
        "sync-grpo-k0-dec1-s0",
        "sync-grpo-k0-dec1-s3",
        "sync-grpo-behavior-k0-dec1-s0",
        "sync-grpo-behavior-k0-dec1-s3",
    ]
    both = sweep(modes=["sync"], decoupled=[0])
    assert resolve(both, cells(both)[0]).objective.name == "decoupled"


def test_an_arm_that_names_the_objective_makes_the_decoupled_axis_inert() -> None:
    found = ids(modes=["areal"], staleness_k=[4], arms=BEHAVIOR, decoupled=[0])
    assert found == ["areal-grpo-k4-dec0-s0", "areal-grpo-behavior-k4-dec1-s0"]


def test_a_sweep_that_names_the_objective_makes_the_decoupled_axis_inert() -> None:
    assert ids(modes=["areal"], staleness_k=[4], objective={"name": "live"}) == ["areal-grpo-k4-dec1-s0"]


def test_an_arm_that_only_tunes_the_decoupled_loss_has_no_live_cell() -> None:
    found = ids(modes=["areal"], staleness_k=[4], arms={"omit": {"objective.weight": "omit"}})
    assert found == ["areal-grpo-k4-dec0-s0", "areal-grpo-k4-dec1-s0", "areal-grpo-omit-k4-dec1-s0"]


def test_an_arm_has_cells_only_where_the_loss_reads_what_it_sets() -> None:
    """`dis` reads no weight and `decoupled` no band; `dis` algorithms are named dec1."""
    arms = {"omit": {"objective.weight": "omit"}, "wide": {"objective.band": "closed_03_5"}}
    found = ids(modes=["lagged"], staleness_k=[4], algorithms=["grpo", "single_dis"], arms=arms)
    assert found == [
        "lagged-grpo-k4-dec0-s0",
        "lagged-grpo-k4-dec1-s0",
        "lagged-grpo-omit-k4-dec1-s0",
        "lagged-single_dis-k4-dec1-s0",
        "lagged-single_dis-wide-k4-dec1-s0",
    ]


def test_excluded_cells_are_left_out() -> None:
    arms = {"near": {"kl.coef": 0.1}}
    axes = {"modes": ["areal", "lagged"], "staleness_k": [2, "inf"], "arms": arms}
    every = ids(**axes, exclude=[{"mode": "lagged", "k": "inf"}])
    assert not [name for name in every if "lagged" in name and "kinf" in name]
    assert len(every) == 12
    left = ids(**axes, exclude=[{"mode": "lagged", "k": "inf"}, {"mode": "areal", "arm": ["base"]}])
    assert left == [n for n in every if not n.startswith("areal") or "near" in n]
    assert ids(**axes, exclude=[{"k": "inf"}, {"decoupled": 0}, {"arm": "near"}]) == [
        "areal-grpo-k2-dec1-s0",
        "lagged-grpo-k2-dec1-s0",
    ]


def test_an_arm_need_not_fit_an_algorithm_that_is_excluded_with_it() -> None:
    found = ids(
        algorithms=["grpo", "single_dis"],
        modes=["sync"],
        arms={"narrow": {"batch.group_size": 1, "batch.groups": 64}},
        exclude=[{"algorithm": "grpo", "arm": "narrow"}],
    )
    assert found == [
        "sync-grpo-k0-dec1-s0",
        "sync-single_dis-k0-dec1-s0",
        "sync-single_dis-narrow-k0-dec1-s0",
    ]


def test_recipes_are_the_algorithms_of_the_design() -> None:
    names = ["grpo", "grpo_dis", "single_dis", "running_mean"]
    one = sweep(algorithms=names, modes=["lagged"], staleness_k=[1], decoupled=[1])
    runs = [resolve(one, cell) for cell in cells(one)]
    assert [(r.algorithm, r.batch.group_size, r.advantage.name, r.objective.name) for r in runs] == [
        ("grpo", 8, "group", "decoupled"),
        ("grpo_dis", 8, "group", "dis"),
        ("single_dis", 1, "batch", "dis"),
        ("running_mean", 1, "running_mean", "decoupled"),
    ]
    assert {run.batch.groups for run in runs} == {16}


def test_one_process_decodes_a_whole_batch_at_once() -> None:
    assert [only(modes=[mode]).slots for mode in ("sync", "lagged", "async", "areal")] == [128, 128, 48, 48]


def test_ids_are_unique_and_name_the_cell(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "My Words.v2.jsonl").touch()
    one = sweep(datasets=["sort", "jsonl:My Words.v2.jsonl"], arms=BEHAVIOR)
    paths = [str(cell.directory("x")) for cell in cells(one)]
    assert len(set(paths)) == len(paths)
    assert paths[0] == "results/x/sort/runs/sync-grpo-k0-dec1-s0"
    assert cells(one)[-1].dataset_slug == "my-words-v2"
    assert cell_named(one, cells(one)[-1].id, "my-words-v2") == cells(one)[-1]
    assert all(Cell.of(resolve(one, cell)) == cell for cell in cells(one))


def test_a_cell_that_is_not_there_is_named_with_the_closest_one() -> None:
    with pytest.raises(ConfigError, match=r"cell = 'areal-grpo-k3-dec1-s0'.*write areal-grpo-k"):
        cell_named(sweep(), "areal-grpo-k3-dec1-s0")


@pytest.mark.parametrize("seed", [1, "1", "01", "001"])
def test_one_seed_has_one_name(seed: object) -> None:
    assert ids(modes=["sync"], seeds=[seed]) == ["sync-grpo-k0-dec1-s1"]


@pytest.mark.parametrize("lr", [5e-6, "5e-6", "0.000005", "5.0E-6"])
def test_one_learning_rate_has_one_canonical_form(lr: object) -> None:
    run = only(optim={"lr": lr})
    assert run.optim.lr == 5e-6
    assert canonical_json(run) == canonical_json(only(optim={"lr": 5e-6}))
    assert config_hash(run) == config_hash(only(optim={"lr": 5e-6}))


def test_whole_and_floating_numbers_have_one_canonical_form() -> None:
    assert canonical_json(only(optim={"grad_clip": 2})) == canonical_json(only(optim={"grad_clip": 2.0}))
    assert canonical_json(only()) == canonical_json(only(reward={"timeout_sec": 10}))


def test_canonical_json_is_sorted_compact_and_strict() -> None:
    text = canonical_json(only())
    content = json.loads(text)
    assert text == json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert "\n" not in text
    assert ": " not in text


def test_paths_below_the_working_directory_are_written_without_it(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").touch()
    absolute = only(datasets=[f"jsonl:{tmp_path}/a.jsonl"], model={"id": f"{tmp_path}/models/m"})
    relative = only(datasets=["jsonl:a.jsonl"], model={"id": "models/m"})
    assert canonical_json(absolute) == canonical_json(relative)
    assert str(tmp_path) not in canonical_json(absolute)


def test_the_hash_is_sixteen_hex_digits_and_follows_every_key() -> None:
    base, changed = only(), only(batch={"groups": 17})
    assert len(config_hash(base)) == 16
    assert int(config_hash(base), 16) >= 0
    assert config_hash(base) != config_hash(changed)
    assert config_hash(base) != config_hash(only(seeds=[1]))


def test_a_key_changes_only_the_cells_that_have_it() -> None:
    def hashes(**content: object) -> dict[str, str]:
        one = sweep(arms=BEHAVIOR | {"slow": {"optim.lr": 1e-5}}, **content)
        return {cell.id: config_hash(resolve(one, cell)) for cell in cells(one)}

    base = hashes()
    assert hashes(report={"k_headline": 2}) == base
    assert base.items() <= hashes(seeds=[0, 1]).items()
    changed = hashes(optim={"lr": 2e-4})
    assert {name for name in base if base[name] == changed[name]} == {n for n in base if "-slow-" in n}


def test_the_axis_decides_the_loss_and_an_arm_overrules_it() -> None:
    one = sweep(modes=["areal"], staleness_k=[4], arms=BEHAVIOR)
    losses = {cell.id: resolve(one, cell).objective.name for cell in cells(one)}
    assert losses == {
        "areal-grpo-k4-dec0-s0": "live",
        "areal-grpo-k4-dec1-s0": "decoupled",
        "areal-grpo-behavior-k4-dec1-s0": "behavior",
    }


def test_an_arm_overrules_recipe_and_blocks() -> None:
    arm = {"advantage.name": "batch", "optim.lr": "1e-3", "train.updates": 7}
    one = sweep(optim={"lr": 1e-5, "grad_clip": 0.5}, arms={"a": arm})
    run = resolve(one, cell_named(one, "areal-grpo-a-k0-dec0-s0"))
    assert (run.advantage.name, run.optim.lr, run.optim.grad_clip, run.train.updates) == (
        "batch",
        1e-3,
        0.5,
        7,
    )
    assert resolve(one, cell_named(one, "areal-grpo-k0-dec0-s0")).advantage.name == "group"


def test_unbounded_staleness_is_infinite() -> None:
    assert only(staleness_k=["inf"]).staleness_bound == float("inf")
    assert only(staleness_k=[float("inf")]).k == "inf"
    assert only(staleness_k=["4"]).staleness_bound == 4


def test_a_bound_that_cannot_bind_is_a_warning() -> None:
    assert inert_warnings(sweep(staleness_k=[0, 8, "inf"], train={"updates": 36})) == []
    (line,) = inert_warnings(sweep(staleness_k=[0, 8, "inf"], train={"updates": 35}))
    assert "staleness_k = 8" in line
    assert "36 updates" in line
    assert inert_warnings(sweep(modes=["sync"], staleness_k=[8], train={"updates": 1})) == []


def test_two_thousand_cells_take_under_two_seconds() -> None:
    start = time.process_time()
    one = sweep(seeds=list(range(100)), arms=BEHAVIOR | {"slow": {"optim.lr": 1e-5}})
    runs = [resolve(one, cell) for cell in cells(one)]
    assert len({config_hash(run) for run in runs}) == len(runs) == 2300
    assert time.process_time() - start < 2


@given(
    k=st.one_of(st.integers(0, 100), st.just("inf")),
    decoupled=st.sampled_from([0, 1]),
    mode=st.sampled_from(["sync", "areal"]),
    seed=st.integers(0, 2**63),
    lr=st.floats(1e-12, 1.0),
    betas=st.tuples(st.floats(0, 0.999), st.floats(0, 0.999)),
    group_size=st.integers(2, 64),
    model=st.text(min_size=1, max_size=20),
    task_limit=st.one_of(st.none(), st.integers(1, 10**6)),
    arms=st.sampled_from([{}, BEHAVIOR, {"slow": {"optim.weight_decay": "5e-6"}}]),
)
def test_a_resolved_cell_survives_its_canonical_json(
    k, decoupled, mode, seed, lr, betas, group_size, model, task_limit, arms
) -> None:
    one = SweepConfig.model_validate(
        {
            "experiment": "x",
            "modes": [mode],
            "staleness_k": [k],
            "decoupled": [decoupled],
            "seeds": [seed],
            "arms": arms,
            "optim": {"lr": lr, "betas": list(betas)},
            "batch": {"group_size": group_size},
            "model": {"id": model},
            "data": {"task_limit": task_limit},
        }
    )
    for cell in cells(one):
        run = resolve(one, cell)
        again = run_from_json(canonical_json(run))
        assert again == run
        assert canonical_json(again) == canonical_json(run)
        assert Cell.of(again) == cell
        assert run.objective.name != "axis"
