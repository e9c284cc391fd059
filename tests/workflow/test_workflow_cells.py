"""Which cells Snakemake runs: all at first, and then only those that have a reason of their own."""

import json
import re
import shlex
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from snakemake.cli import parse_config
from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from async_rollout.config.cells import cells, resolve
from async_rollout.config.load import load_sweep, sweep_from_dict
from async_rollout.places import model_directory

README = Path(__file__).parents[2] / "README.md"
OURS = ("--configfile", "sweep.yaml")
K0, K4 = "areal-grpo-k0-dec1-s0", "areal-grpo-k4-dec1-s0"
CAREFUL_K0, CAREFUL_K4 = "areal-grpo-careful-k0-dec1-s0", "areal-grpo-careful-k4-dec1-s0"
ALL = sorted([K0, K4, CAREFUL_K0, CAREFUL_K4])


@pytest.fixture(scope="module")
def clean(make_checkout):
    return make_checkout()


@pytest.fixture(scope="module")
def finished(make_checkout):
    checkout = make_checkout()
    checkout.snakemake(*OURS)
    assert checkout.trained() == ALL
    return checkout


@pytest.mark.parametrize("name", ["demo", "default"])
def test_clean_checkout_lists_the_cells_of_a_sweep(clean, name):
    sweep = load_sweep(clean.directory / f"config/{name}.yaml")
    chosen = () if name == "default" else ("--configfile", f"config/{name}.yaml")
    assert clean.planned(*chosen) == {cell.id for cell in cells(sweep)}


def test_graph_of_a_clean_checkout(clean):
    assert clean.snakemake("--dag", *OURS).count("run\\n") == 4
    assert not (clean.directory / "results").exists()


def test_readme_draws_the_rules_as_they_are(clean):
    graph = clean.snakemake("--rulegraph", "mermaid-js", *OURS)
    names = dict(re.findall(r"(id\d+)\[(\w+)\]", graph))
    edges = {(names[a], names[b]) for a, b in re.findall(r"(id\d+) --> (id\d+)", graph)}
    block = README.read_text().split("```mermaid")[1].split("```")[0]
    drawn = set()
    for line in block.splitlines():
        chain = re.findall(r"(\w+)(?:\[[^]]*\])?(?: -->|$)", line.strip())
        drawn |= set(pairwise(chain))
    assert drawn == edges - {("run", "all")}  # every summary is a target too


def test_nothing_is_trained_twice(finished):
    assert "Nothing to be done" in finished.snakemake(*OURS)
    assert finished.trained() == []


def test_key_of_one_arm_reruns_its_cells_only(finished):
    planned = finished.planned(*OURS, "--config", "arms={careful: {optim.lr: 2e-5}}")
    assert planned == {CAREFUL_K0, CAREFUL_K4}


def test_key_that_all_cells_share_reruns_all(finished):
    assert finished.planned(*OURS, "--config", "train={updates: 7}") == set(ALL)


def test_new_seed_runs_new_cells_only(finished):
    planned = finished.planned(*OURS, "--config", "seeds=[0, 1]")
    assert planned == {cell.replace("-s0", "-s1") for cell in ALL}


def test_report_key_reruns_no_cell(finished):
    output = finished.snakemake(*OURS, "-n", "--config", "report={k_headline: 0}")
    assert "Cell " not in output
    assert "Tables of dataset sort" in output
    assert "Report of the sweep" in output


def test_what_is_asked_of_a_cluster_reruns_nothing(finished):
    asked = "cluster={partition: gpu, mem_mb: 9000, runtime_min: 5, cpus: 3, constraint: fast}"
    assert "Nothing to be done" in finished.snakemake(*OURS, "-n", "--config", asked)


def test_model_and_data_made_again_rerun_no_cell(finished):
    model = next((finished.directory / "results/models").iterdir()).relative_to(finished.directory)
    targets = (f"{model}/config.json", "results/tried/sort/data/manifest.json")
    output = finished.snakemake(*OURS, "--forcerun", "warm_start", "prepare", "--", *targets)
    assert "The embedded model" in output
    assert finished.planned(*OURS) == set()


def test_cells_that_have_not_run_are_there_also_when_their_model_is_made_again(make_checkout):
    checkout = make_checkout()
    sweep = load_sweep(checkout.directory / "sweep.yaml")
    model = model_directory(resolve(sweep, cells(sweep)[0]))
    checkout.snakemake(*OURS, "--", f"{model}/config.json")
    assert checkout.planned(*OURS, "--forcerun", "warm_start") == set(ALL)


def test_damaged_and_foreign_summaries_are_done_again(finished):
    runs = finished.directory / "results/tried/sort/runs"
    damaged = {
        K0: "",
        K4: (runs / K4 / "summary.json").read_text()[:200],
        CAREFUL_K0: "{}",
        CAREFUL_K4: (runs / K4 / "summary.json").read_text(),  # sound, but of another configuration
    }
    for cell, text in damaged.items():
        (runs / cell / "summary.json").write_text(text)

    assert finished.planned(*OURS) == set(ALL)
    assert all((runs / cell / "summary.json").read_text() == text for cell, text in damaged.items())

    finished.snakemake(*OURS)
    assert finished.trained() == ALL
    assert all(json.loads((runs / cell / "summary.json").read_text())["config_hash"] for cell in ALL)
    assert finished.planned(*OURS) == set()


def test_summary_from_another_machine_is_taken(finished, make_checkout):
    elsewhere = make_checkout()
    (finished.directory / "results").rename(elsewhere.directory / "results")
    try:
        assert elsewhere.planned(*OURS) == set()
    finally:
        (elsewhere.directory / "results").rename(finished.directory / "results")


def test_broken_configuration_is_refused(clean):
    with pytest.raises(AssertionError, match=r"train\.updates = '?-5'?: out of range"):
        clean.snakemake("-n", *OURS, "--config", "train={updates: -5}")


@pytest.mark.long
def test_a_thousand_cells_list_in_seconds(clean):
    seeds = f"seeds=[{','.join(map(str, range(250)))}]"
    started = time.monotonic()
    assert len(clean.planned(*OURS, "--config", seeds)) == 1000
    assert time.monotonic() - started < 20


def test_a_failed_cell_is_shown_as_missing_and_run_again(make_checkout):
    checkout = make_checkout()
    output = checkout.snakemake(*OURS, "--keep-going", fails=K4)
    assert checkout.trained() == sorted(set(ALL) - {K4})
    assert "shows those that did not" in output
    table = (checkout.directory / "results/tried/sort/tables/summary_headline.csv").read_text()
    (row,) = [line for line in table.splitlines() if line.startswith(K4)]
    assert "missing" in row
    checkout.snakemake(*OURS)
    assert checkout.trained() == [K4]
    table = (checkout.directory / "results/tried/sort/tables/summary_headline.csv").read_text()
    assert "missing" not in table


def test_what_a_failed_run_shows_is_made_again_when_its_cell_is_asked_for_no_more(make_checkout):
    checkout = make_checkout()
    experiment = checkout.directory / "results/tried"
    one, new = (*OURS, "--config", "staleness_k=[4]"), K4.replace("-s0", "-s1")
    checkout.snakemake(*one, "seeds=[0, 1]", "--keep-going", fails=new)
    assert new in (experiment / "report.html").read_text()
    assert again(experiment) == [*given(one), "seeds=[0, 1]"]
    checkout.snakemake(*one, "--", "results/tried/sort/tables/checks.csv")
    assert (experiment / ".partial").exists(), "that was a success of this file alone"
    checkout.snakemake(*one)
    assert not (experiment / ".partial").exists()
    assert new not in (experiment / "report.html").read_text()
    assert again(experiment) == given(one)
    assert checkout.trained() == sorted([K4, CAREFUL_K4, CAREFUL_K4.replace("-s0", "-s1")])


def given(arguments):
    """The report's command where Snakemake got these."""
    return ["snakemake", "--profile", "profiles/local", *arguments]


def again(experiment):
    """The arguments of the command that makes the results again."""
    return shlex.split(re.search("^    (snakemake .*)$", (experiment / "INDEX.md").read_text(), re.M)[1])


def test_the_command_says_the_overrides_as_snakemake_reads_them(make_checkout):
    checkout = make_checkout()
    overrides = ["train.updates=7", "arms.careful.optim.lr=2e-5", "seeds=[0, 1]", "report.k_headline=0"]
    command = [checkout.directory / "bin/async-rollout", "report", "sweep.yaml", *overrides]
    subprocess.run(command, cwd=checkout.directory, env=checkout.environment(), check=True)
    said = again(checkout.directory / "results/tried")
    begin = given([*OURS, "--config"])
    assert said[: len(begin)] == begin
    content = load_configfile(checkout.directory / "sweep.yaml")
    update_config(content, parse_config(said[len(begin) :]))
    theirs, ours = sweep_from_dict(content), load_sweep(checkout.directory / "sweep.yaml", overrides)
    assert theirs.report == ours.report
    assert [resolve(theirs, c) for c in cells(theirs)] == [resolve(ours, c) for c in cells(ours)]


def test_cells_that_run_together_have_gpus_of_their_own(make_checkout, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    checkout = make_checkout()
    free = {"name": "H200", "total_mb": 143_771, "used_mb": 4, "processes": ()}
    checkout.gpus(*({"index": index} | free for index in range(8)))
    on_gpu = ("train={devices: [cuda:0]}", "rollout={devices: [cuda:0]}")
    checkout.snakemake(*OURS, "--cores", "8", "--config", *on_gpu)
    assert checkout.trained() == ALL
    lines = [line.split() for line in (checkout.directory / "gpus.log").read_text().splitlines()]
    spans = sorted((float(begun), float(ended), gpu) for gpu, begun, ended in lines)
    assert {gpu for *_, gpu in spans} == {"5", "7"}
    together = [(a, b) for i, a in enumerate(spans) for b in spans[i + 1 :] if b[0] < a[1]]
    assert together, "no two ran at the same time: the run shows nothing"
    assert all(a[2] != b[2] for a, b in together)


def test_one_cell_s_directory_deleted_redoes_that_cell(finished, tmp_path):
    directory = finished.directory / "results/tried/sort/runs" / CAREFUL_K4
    directory.rename(tmp_path / "away")
    assert finished.planned(*OURS) == {CAREFUL_K4}
    (tmp_path / "away").rename(directory)


@pytest.mark.parametrize(
    ("edit", "new"),
    [
        ("staleness_k=[4, 0]", set()),  # the order of the axes names nothing
        ("staleness_k=[0]", set()),
        ("arms={bold: {optim.lr: 2e-4}, careful: {optim.lr: 5e-5}}", {"bold-k0", "bold-k4"}),
        ("staleness_k=[0, 2, 4]", {"k2", "careful-k2"}),
    ],
)
def test_editing_the_grid_renames_and_repeats_nothing(finished, edit, new):
    assert finished.planned(*OURS, "--config", edit) == {f"areal-grpo-{name}-dec1-s0" for name in new}


def test_changed_tasks_rerun_the_cells_of_their_dataset_only(make_checkout):
    checkout = make_checkout()
    tasks = checkout.directory / "words.jsonl"
    row = {"task_type": "gsm8k", "gold_answer": "3"}
    lines = [json.dumps(row | {"task_id": f"t{i}", "prompt": f"{i}?"}) + "\n" for i in range(20)]
    tasks.write_text("".join(lines))
    sizes = "data={train_size: 14, eval_size: 4}"
    targets = [f"results/tried/{dataset}/runs/{K0}/summary.json" for dataset in ("sort", "words")]
    sweep = (*OURS, "--config", "datasets=[sort, 'jsonl:words.jsonl']", sizes, "--", *targets)
    checkout.snakemake(*sweep)
    assert checkout.trained() == [K0, K0]

    tasks.touch()
    checkout.snakemake(*sweep)
    assert checkout.trained() == []

    tasks.write_text("".join(lines[2:]))
    checkout.snakemake(*sweep)
    assert checkout.trained() == [K0]


def test_small_cells_in_groups_are_run_once_each(make_checkout):
    """On a cluster a group is one job; here Snakemake runs its cells one by one."""
    checkout = make_checkout()
    targets = [f"results/tried/sort/runs/{cell}/summary.json" for cell in (K0, K4)]
    checkout.snakemake(*OURS, "--groups", "run=cells", "--group-components", "cells=4", "--", *targets)
    assert checkout.trained() == [K0, K4]
    assert checkout.planned(*OURS, "--", *targets) == set()
