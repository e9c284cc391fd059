"""`async-rollout judge`: a user's answers, judged as in a run."""

import json

import pytest

from async_rollout.cli import main

ROWS = [
    {"id": 1, "task_type": "gsm8k", "gold_answer": "1,250", "response": "#### 1250"},
    {"id": "m", "task_type": "math", "gold_answer": r"\frac{1}{2}", "response": r"\boxed{0.5}"},
    {
        "id": "c",
        "task_type": "coding",
        "reference_tests": ["assert f(1) == 2"],
        "response": "def f(x): return 3",
    },
    {
        "id": "i",
        "task_type": "coding",
        "reference_tests": ["assert f(1) > 1"],
        "starter_code": "def f(x):",
        "response": "    return x + 1",
    },
    {"id": "s", "task_type": "sort", "gold_answer": "#012", "response": "#021"},
]


def judged(tmp_path, rows, *arguments):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return main(["judge", str(path), *arguments])


def test_each_answer_gets_a_line_in_order(tmp_path, capsys):
    assert judged(tmp_path, ROWS) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["id"], line["reward"], line["verdict"]) for line in lines] == [
        ("1", 1.0, "pass"),
        ("m", 1.0, "pass"),
        ("c", 0.0, "fail"),
        ("i", 1.0, "pass"),
        ("s", 0.0, "fail"),
    ]
    assert [line["extracted"] for line in lines[:2]] == ["1250", "0.5"]
    assert all(0 < line["milliseconds"] < 10_000 for line in lines)
    assert [line.get("compared") for line in lines] == [None, None, None, "inside", None]


def test_the_reward_block_of_a_sweep_is_used(tmp_path, capsys):
    (tmp_path / "sweep.yaml").write_text("experiment: tried\nreward: {strict: true}\n")
    row = {"id": "a", "task_type": "gsm8k", "gold_answer": "5", "response": "it is 5"}
    assert judged(tmp_path, [row], "--config", str(tmp_path / "sweep.yaml")) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "no_answer"
    assert judged(tmp_path, [row], "--config", str(tmp_path / "sweep.yaml"), "reward.strict=false") == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "pass"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"response": None}, "`response` is missing"),
        ({"id": None}, "`id` is missing"),
        ({"answer": "5"}, "unknown field `answer`"),
        ({"task_type": "sums"}, "task_type `sums` is unknown"),
        ({"gold_answer": "five"}, "'five' is not a number"),
        ({"task_type": "math", "gold_answer": "("}, "cannot be compared by value"),
    ],
)
def test_a_row_that_cannot_be_judged_is_named_before_anything_is_printed(tmp_path, capsys, change, problem):
    assert judged(tmp_path, [ROWS[0], {**ROWS[0], "id": 2, **change}]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert problem in output.err
    assert "answers.jsonl" in output.err
