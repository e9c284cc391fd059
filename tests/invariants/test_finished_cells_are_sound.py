"""`async-rollout check` finds what a cell's files contradict, and nothing in a cell that is sound."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from async_rollout.analysis.audit import faults
from async_rollout.cli import main
from tiny_cells import cell_config, run_tiny


@pytest.fixture(scope="module")
def cells(tmp_path_factory, areal_cell):
    """A finished cell by mode. The one of mode areal has rejected groups and stale tokens."""
    common = {"train": {"updates": 8}, "evaluation": {"every": 8}}
    made = {"areal": areal_cell.out}
    for mode, k in (("sync", 0), ("lagged", 2), ("async", 1)):
        config = cell_config(mode=mode, k=k, **common)
        made[mode] = run_tiny(config, tmp_path_factory.mktemp(mode)).out
    return made


@pytest.fixture
def copy(cells, tmp_path):
    """Copies of the files that are looked at."""

    def of(mode: str) -> Path:
        for name in ("summary.json", "metrics.jsonl", "results.jsonl", "config.json"):
            shutil.copy(cells[mode] / name, tmp_path)
        return tmp_path

    return of


@pytest.mark.parametrize("mode", ["sync", "async", "areal", "lagged"])
def test_a_sound_cell_has_no_faults(cells, mode):
    assert faults(cells[mode]) == []


def test_a_cell_that_crashed_on_its_way_has_no_faults(crashed_run):
    assert faults(crashed_run[1].out) == []


Edit = Callable[[dict], None]


def edit_row(directory: Path, name: str, which: Callable[[dict], bool], edit: Edit) -> None:
    """Change the first row for which `which` holds."""
    path = directory / name
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    edit(next(row for row in rows if which(row)))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def edit_summary(directory: Path, edit: Edit) -> None:
    path = directory / "summary.json"
    record = json.loads(path.read_text())
    edit(record)
    path.write_text(json.dumps(record))


def trained(row: dict) -> bool:
    return row["dropped"] is None


def older(row: dict) -> None:
    """The sample's first run of tokens was drawn nine versions earlier."""
    row["versions"][0][0] -= 9


def drop_first(directory: Path, name: str, which: Callable[[dict], bool]) -> None:
    path = directory / name
    lines = path.read_text().splitlines(keepends=True)
    lines.remove(next(line for line in lines if which(json.loads(line))))
    path.write_text("".join(lines))


def repeat_first(directory: Path) -> None:
    path = directory / "results.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[0]]))


def same_task(directory: Path) -> None:
    """Every trained sample of group 1 claims group 0's task."""
    path = directory / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    (task,) = {row["task_id"] for row in rows if row["group"] == 0}
    for row in rows:
        if row["group"] == 1:
            row["task_id"] = task
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


ONE = {"1": 3}
PLANTED = {
    "a token older than K": (
        "areal",
        lambda d: edit_row(d, "results.jsonl", trained, older),
        "trained_staleness_at_most_K: K = 2",
    ),
    "a token of the future": (
        "sync",
        lambda d: edit_row(d, "results.jsonl", trained, lambda r: r["versions"][0].__setitem__(0, 7)),
        "trained_staleness_at_most_K: K = 0",
    ),
    "a staleness that the versions do not have": (
        "areal",
        lambda d: edit_row(d, "results.jsonl", trained, lambda r: r.update(staleness=r["staleness"] + 1)),
        "staleness is not trained_at",
    ),
    "a histogram that the rows do not have": (
        "areal",
        lambda d: edit_summary(d, lambda s: s["staleness_histogram"]["trained"].update({"0": 1})),
        "trained tokens by age: summary",
    ),
    "a lag that is not exactly K": (
        "lagged",
        lambda d: edit_row(
            d, "metrics.jsonl", lambda r: r["version"] == 6, lambda r: r.update(staleness=ONE)
        ),
        "lagged: not exactly",
    ),
    "a policy that moved before it trained": (
        "sync",
        lambda d: edit_row(d, "metrics.jsonl", lambda r: True, lambda r: r.update(first_logratio_max=0.01)),
        "k0_is_on_policy: commits 1; largest log-ratio 0.01",
    ),
    "a sample that ends twice": (
        "sync",
        repeat_first,
        "samples that end twice",
    ),
    "a sample that is lost": (
        "areal",
        lambda d: drop_first(d, "results.jsonl", trained),
        "trained groups without all of their 4 samples",
    ),
    "a dropped sample that is lost": (
        "areal",
        lambda d: drop_first(d, "results.jsonl", lambda r: not trained(r)),
        "nothing_lost: samples: summary",
    ),
    "a group that no commit has": (
        "sync",
        lambda d: edit_row(d, "metrics.jsonl", lambda r: True, lambda r: r["groups"].pop()),
        "not 4 groups in commits 1",
    ),
    "a group trained twice": (
        "sync",
        lambda d: edit_row(
            d, "metrics.jsonl", lambda r: r["version"] == 2, lambda r: r["groups"].__setitem__(0, 0)
        ),
        "groups in more than one commit: 0",
    ),
    "a commit that is lost": (
        "sync",
        lambda d: drop_first(d, "metrics.jsonl", lambda r: r["version"] == 3),
        "do not count up",
    ),
    "a run that is too short": (
        "sync",
        lambda d: edit_summary(d, lambda s: s["config"]["train"].update(updates=9)),
        "8 updates of 9",
    ),
    "a prompt trained twice in an epoch": ("sync", same_task, "(epoch, task) trained twice"),
    "a group that never ends": (
        "sync",
        lambda d: edit_summary(d, lambda s: s["groups"].update(submitted=s["groups"]["submitted"] + 1)),
        "groups handed out",
    ),
    "tokens that vanish": (
        "sync",
        lambda d: edit_summary(d, lambda s: s["tokens"].update(generated=s["tokens"]["generated"] + 5)),
        "tokens generated",
    ),
    "a guessed reward": (
        "sync",
        lambda d: edit_row(d, "results.jsonl", trained, lambda r: r.update(reward=None)),
        "reward_is_judged_not_guessed",
    ),
    "a damaged row": (
        "sync",
        lambda d: (d / "results.jsonl").write_text('{"group": 0}\n'),
        "files: KeyError",
    ),
    "a damaged summary": ("sync", lambda d: (d / "summary.json").write_text("{}"), "files: "),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(copy, name):
    mode, plant, said = PLANTED[name]
    directory = copy(mode)
    plant(directory)
    found = [str(fault) for fault in faults(directory)]
    assert any(said in text for text in found), found


def test_the_command_names_the_cell_and_fails(cells, tmp_path, capsys):
    runs = tmp_path / "results" / "tried" / "sort" / "runs"
    for mode in ("sync", "lagged"):
        shutil.copytree(cells[mode], runs / mode)
    (runs / "under-way").mkdir()
    assert main(["check", str(tmp_path / "results")]) == 0
    assert "2 cells sound, 0 broken, 1 not finished" in capsys.readouterr().err
    edit_row(runs / "sync", "results.jsonl", trained, older)
    with pytest.raises(SystemExit, match="1"):
        main(["check", str(tmp_path / "results")])
    assert capsys.readouterr().out.startswith("tried/sort/sync: trained_staleness_at_most_K: K = 0")


def test_nothing_to_check_is_no_success(tmp_path):
    with pytest.raises(SystemExit, match="1"):
        main(["check", str(tmp_path)])
