"""Cells are found below the results directory and nowhere else."""

import json
import os

import pytest

from async_rollout.monitor.places import find_places
from async_rollout.monitor.watcher import Watcher
from monitored import commit, enter, expect, start
from summaries import a_cell

CELL = a_cell()


def test_an_experiment_or_all_of_them(tmp_path):
    start(tmp_path, CELL, experiment="one")
    start(tmp_path, CELL, experiment="two")
    ids = {f"{experiment}/sort/{CELL.id}" for experiment in ("one", "two")}
    assert find_places(tmp_path).keys() == ids
    assert find_places(tmp_path / "one").keys() == {f"one/sort/{CELL.id}"}


def test_cells_are_found_also_where_no_workflow_put_them(tmp_path):
    """One cell, a dataset, and what `async-rollout run --out` wrote wherever it was told to."""
    directory = start(tmp_path / "results", CELL)
    enter(directory, "running")
    ids = {f"demo/sort/{CELL.id}"}
    assert find_places(directory).keys() == ids
    assert find_places(directory.parent).keys() == ids
    assert find_places(directory.parents[1]).keys() == ids
    (tmp_path / "by" / "hand").mkdir(parents=True)
    directory.rename(tmp_path / "by" / "hand" / "first")
    assert find_places(tmp_path / "by").keys() == {"by/hand/first"}
    assert [place.directory for place in find_places(tmp_path / "by").values()] == [
        tmp_path / "by/hand/first"
    ]
    (tmp_path / "by" / "link").symlink_to(tmp_path / "by" / "hand")
    assert len(find_places(tmp_path / "by")) == 1


def test_nothing_is_found_in_nothing(tmp_path):
    assert find_places(tmp_path) == {}
    assert find_places(tmp_path / "missing") == {}


@pytest.mark.parametrize("level", ["experiment", "dataset", "runs", "cell"])
def test_links_lead_nowhere(tmp_path, level):
    results, elsewhere = tmp_path / "results", tmp_path / "elsewhere"
    directory = start(elsewhere, CELL)
    enter(directory, "running")
    parts = ["demo", "sort", "runs", CELL.id]
    depth = ["experiment", "dataset", "runs", "cell"].index(level)
    parent = results.joinpath(*parts[:depth])
    parent.mkdir(parents=True)
    (parent / parts[depth]).symlink_to(elsewhere.joinpath(*parts[: depth + 1]))
    if level != "experiment":
        expect(results, CELL)  # announced as well
    assert find_places(results) == {}


@pytest.mark.parametrize("name", ["..", ".", "", "../../../../etc", "/etc", "a/b", "a\0b"])
@pytest.mark.parametrize("field", ["cell", "dataset"])
def test_announced_names_that_are_paths_are_left_out(tmp_path, name, field):
    expect(tmp_path, CELL)
    path = tmp_path / "demo" / "cells.json"
    (entry,) = json.loads(path.read_text())
    path.write_text(json.dumps([entry, entry | {field: name}, "x", {"cell": 3}]))
    assert find_places(tmp_path).keys() == {f"demo/sort/{CELL.id}"}


def test_a_damaged_announcement_announces_nothing(tmp_path):
    expect(tmp_path, CELL)
    (tmp_path / "demo" / "cells.json").write_text('[{"cell": ')
    assert find_places(tmp_path) == {}


def test_names_that_are_no_text_are_shown_escaped(tmp_path):
    directory = os.fsencode(tmp_path / "demo" / "sort" / "runs") + b"/bad-\xff"
    os.makedirs(directory)
    assert find_places(tmp_path).keys() == {"demo/sort/bad-\\xff"}


def test_a_name_tells_the_axes_where_no_configuration_does(tmp_path):
    name = "areal-grpo_dis-tis-cap-kinf-dec1-s12"
    (tmp_path / "demo" / "sort" / "runs" / name).mkdir(parents=True)
    watcher = Watcher(tmp_path)
    watcher.scan()
    (card,) = watcher.listing().cells
    assert (card.mode, card.algorithm, card.arm, card.k, card.decoupled, card.seed) == (
        "areal",
        "grpo_dis",
        "tis-cap",
        "inf",
        1,
        12,
    )


def test_cells_come_and_go(tmp_path):
    directory = start(tmp_path, CELL)
    watcher = Watcher(tmp_path)
    watcher.scan(1000)
    seen, _, cards, gone = watcher.changes(0)
    assert [card.state for card in cards] == ["queued"]
    assert gone == []
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    watcher.scan(1100)
    _, sweep, cards, gone = watcher.changes(seen)
    assert (cards, gone) == ([], [f"demo/sort/{CELL.id}"])
    assert sweep.states == {}


def test_only_what_changed_is_told_again(tmp_path):
    first, second = start(tmp_path, CELL), start(tmp_path, a_cell(seed=1))
    for directory in (first, second):
        enter(directory, "running")
    watcher = Watcher(tmp_path)
    watcher.scan(1000)
    seen, *_ = watcher.changes(0)
    watcher.scan(1010)
    assert watcher.changes(seen)[2] == []
    commit(second, 1)
    watcher.scan(1020)
    assert [card.seed for card in watcher.changes(seen)[2]] == [1]
