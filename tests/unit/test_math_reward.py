"""MATH answers; one judge for all, since math-verify takes a second to load."""

import json
import threading
import time
from contextlib import closing

import psutil
import pytest

from async_rollout.channels import poll
from async_rollout.config.data import DataConfig
from async_rollout.config.reward import RewardConfig
from async_rollout.killable import Overrun
from async_rollout.rewards.math import MathJudge
from async_rollout.rewards.pool import RewardPool
from async_rollout.tasks import expression
from async_rollout.tasks.convert import convert
from async_rollout.tasks.jsonl import read_tasks, write_tasks
from async_rollout.tasks.sources import load_source
from async_rollout.tasks.task import Task, TaskError


@pytest.fixture(scope="module")
def judge():
    made = MathJudge(timeout_sec=2.0)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\frac{3}{4}", r"\frac{3}{4}"),
        (r"\frac{3}{4}", r"\frac34"),
        (r"\frac{3}{4}", r"\dfrac{3}{4}"),
        (r"\frac{3}{4}", "0.75"),
        (r"\frac{3}{4}", "3/4"),
        (r"\frac{3}{4}", r"\frac{6}{8}"),
        ("-7", "-7.0"),
        ("12,500", "12500"),
        (r"12,\!500", "12500"),
        (r"25\%", r"25\%"),
        (r"25\%", "25"),
        (r"\$8", "8"),
        (r"30^\circ", "30"),
        ("8", r"8 \text{ cm}"),
        ("(1,4]", "(1, 4]"),
        (r"2\frac{1}{4}", r"\frac{9}{4}"),
        ("x^2-1", "(x-1)(x+1)"),
        (r"\sqrt{18}", r"3\sqrt{2}"),
        (r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}"),
        ("y=3x-2", "y = 3x - 2"),
        ("9", "x=9"),
        ("1,2,3", "3,2,1"),
        (r"\text{Thursday}", "Thursday"),
        (r"\text{(B)}", "B"),
        (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
        ("1+3i", "3i+1"),
        (r"4\pi", r"4 \pi"),
    ],
)
def test_equal_values_pass_however_they_are_written(judge, gold, answer):
    verdict = judge(gold, rf"Hence $\boxed{{{answer}}}$.")
    assert (verdict.reward, verdict.verdict, verdict.extracted) == (1.0, "pass", answer)


@pytest.mark.parametrize(
    ("gold", "text", "verdict"),
    [
        ("7", r"\boxed{7} is tempting, but \boxed{8}", "fail"),
        ("(1,4]", r"\boxed{(1,4)}", "fail"),
        (r"\frac{3}{4}", r"\boxed{\frac{4}{3}}", "fail"),
        (r"\text{Thursday}", r"\boxed{\text{Friday}}", "fail"),
        ("x+y", r"\boxed{x-y}", "fail"),
        ("7", r"\boxed{}", "no_answer"),
        ("7", r"\boxed{7", "no_answer"),
        ("7", "it is 7", "no_answer"),
        ("7", r"\boxed{\#@!\frac{}}", "fail"),
        ("7", r"\boxed{" + "7" * 5000 + "}", "malformed"),
    ],
)
def test_other_values_fail_and_say_how(judge, gold, text, verdict):
    judged = judge(gold, text)
    assert (judged.reward, judged.verdict) == (0.0, verdict)


def test_the_last_box_counts(judge):
    assert judge("7", r"\boxed{6}, no, \fbox{7}").correct


@pytest.mark.parametrize("answer", ["9^{9^{9^{9}}}", "100000000!", "(" * 400])
def test_what_cannot_be_compared_in_time_is_wrong_and_leaves_nothing_behind(answer):
    with closing(MathJudge(timeout_sec=0.5)) as judge:
        begun = time.monotonic()
        verdict = judge("3", rf"\boxed{{{answer}}}")
        assert time.monotonic() - begun < 1.5
        assert (verdict.reward, verdict.verdict) == (0.0, "timeout")
        assert judge("3", r"\boxed{\sqrt{9}}").correct
    assert not [p for p in psutil.Process().children() if "python" in p.name() and p.status() == "zombie"]


def test_a_timeout_is_not_kept_for_the_same_answer_on_a_free_machine():
    class BusyOnce(list):
        close = list.clear

        def __call__(self, answers, timeout):
            self.append(answers)
            if len(self) == 1:
                raise Overrun("busy")
            return True

    judge = MathJudge(timeout_sec=2.0)
    judge._same = BusyOnce()
    assert [judge("3", r"\boxed{x}").verdict for _ in range(3)] == ["timeout", "pass", "pass"]
    assert len(judge._same) == 2  # a verdict of the judge itself is kept


def test_a_gold_answer_that_is_not_read_is_our_failure_and_not_kept(monkeypatch):
    with monkeypatch.context() as failing, closing(MathJudge(timeout_sec=2.0)) as judge:
        failing.setattr(expression, "parse", lambda *args, **kwargs: [])
        with pytest.raises(RuntimeError, match=r"cannot read the gold answer '\\\\frac\{1\}\{7\}'"):
            judge(r"\frac{1}{7}", r"\boxed{\frac17}")
        with pytest.raises(ValueError, match="cannot read the gold answer"):
            expression.same((r"\frac{1}{7}", r"\frac17"))
        failing.undo()
        assert judge(r"\frac{1}{7}", r"\boxed{\frac17}").correct  # by another process
    assert expression.same((r"\frac{1}{7}", r"\frac17"))
    with pytest.raises(ValueError, match="cannot read the gold answer"):
        expression.same((r"\frac{", r"\frac{"))


def test_a_thread_and_a_spawned_worker_judge_as_the_main_thread_does(judge, tmp_path):
    answers = [(r"\frac{1}{2}", r"\boxed{0.5}"), ("3", r"\boxed{\sqrt{9}}"), ("3", r"\boxed{\sqrt{8}}")]
    here = [judge(*answer) for answer in answers]
    in_thread = []
    thread = threading.Thread(target=lambda: in_thread.extend(judge(*answer) for answer in answers))
    thread.start()
    thread.join()
    write_tasks(tmp_path / "tasks.jsonl", [Task(f"t{i}", "?", "math", a[0]) for i, a in enumerate(answers)])
    with closing(RewardPool([tmp_path / "tasks.jsonl"], RewardConfig())) as pool:
        pool.start()
        pool.wait_ready(60)
        for i, (_, text) in enumerate(answers):
            pool.submit(i, f"t{i}", text)
        found = {}
        while len(found) < len(answers):
            found.update(pool.poll())
            poll(pool.waitables(), 0.1)
    assert [v.reward for v in here] == [1.0, 1.0, 0.0]
    assert here == in_thread == [found[i] for i in range(len(answers))]


def _math_file(path, solutions):
    rows = [{"problem": f"p{i}", "level": "Level 1", "solution": s} for i, s in enumerate(solutions)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_file_of_math_becomes_tasks_and_what_cannot_be_read_is_left_out(tmp_path):
    _math_file(tmp_path / "train.jsonl", [r"So \boxed{\frac{1}{2}}.", r"\boxed{(}", r"\boxed{1}, \fbox{2}"])
    assert convert("math", tmp_path / "train.jsonl", tmp_path / "tasks.jsonl") == (2, 1)
    tasks = read_tasks(tmp_path / "tasks.jsonl")
    assert [(t.task_id, t.prompt, t.gold_answer) for t in tasks] == [
        ("math-train-1", "p0", r"\frac{1}{2}"),
        ("math-train-3", "p2", "2"),
    ]


def test_a_solution_without_a_box_is_named(tmp_path):
    _math_file(tmp_path / "train.jsonl", [r"\boxed{1}", "it is 1"])
    with pytest.raises(TaskError, match=r"train\.jsonl:2: `solution` has no closed"):
        convert("math", tmp_path / "train.jsonl", tmp_path / "tasks.jsonl")


def test_a_gold_answer_that_no_judge_can_read_is_refused_when_the_data_is_prepared(tmp_path):
    golds = ["1", "2", "3", r"\frac{"]
    path = tmp_path / "own.jsonl"
    write_tasks(path, [Task(f"t{i}", f"p{i}", "math", gold) for i, gold in enumerate(golds)])
    with pytest.raises(TaskError, match=r"own\.jsonl: task_id `t3`: `gold_answer` .* cannot be compared"):
        load_source(f"jsonl:{path}", DataConfig(eval_size=1))
