import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.tasks.jsonl import read_tasks, write_tasks
from async_rollout.tasks.task import AVAILABLE, Task, TaskError, check_task_type

GOOD = {"task_id": "a", "prompt": "2 + 3?", "task_type": "gsm8k", "gold_answer": "5"}


def line(**changes):
    return json.dumps({**GOOD, **changes}) + "\n"


def without(*names):
    return json.dumps({k: v for k, v in GOOD.items() if k not in names}) + "\n"


def read(tmp_path, data, limit=None):
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_tasks(path, limit)


def test_a_line_becomes_a_task(tmp_path):
    (task,) = read(tmp_path, line(starter_code="def f(): ..."))
    assert task == Task("a", "2 + 3?", "gsm8k", "5", (), "def f(): ...")


@pytest.mark.parametrize(
    "data",
    [
        line() + line(task_id="b").rstrip("\n"),
        "\n" + line() + "  \n\n" + line(task_id="b") + "\n",
        "\ufeff" + line() + line(task_id="b"),
        line().replace("\n", "\r\n") + line(task_id="b"),
        line(reference_tests=None, starter_code=None) + line(task_id="b", reference_tests=[]),
        line(prompt="one\u2028line") + line(task_id="b"),
    ],
    ids=["no last newline", "blank lines", "BOM", "CRLF", "null is absent", "U+2028 ends no line"],
)
def test_harmless_variations_are_read(tmp_path, data):
    assert [t.task_id for t in read(tmp_path, data)] == ["a", "b"]


def test_limit_takes_the_first_and_still_checks_the_rest(tmp_path):
    three = "".join(line(task_id=c) for c in "abc")
    assert [t.task_id for t in read(tmp_path, three, limit=2)] == ["a", "b"]
    assert len(read(tmp_path, three, limit=9)) == 3
    with pytest.raises(TaskError, match=":4:"):
        read(tmp_path, three + "{", limit=2)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("{not json}\n", "not JSON"),
        ('{"task_id": "b",\n', "not JSON"),
        ("[1, 2]\n", "a list, not an object"),
        ("17\n", "a number, not an object"),
        (without("prompt"), "`prompt` is missing"),
        (line(task_id=None), "`task_id` is missing"),
        (line(task_id="b", answer="5"), "unknown field `answer`; the fields are task_id"),
        (line(task_id=7), "`task_id` is a number; make it a string"),
        (line(task_id="b", gold_answer=5), "`gold_answer` is a number; make it a string"),
        (line(task_id="b", gold_answer=True), "`gold_answer` is true or false"),
        (line(task_id="b", prompt=" "), "`prompt` is empty"),
        (line(task_id="b", reference_tests="assert"), "`reference_tests` is a string; make it a list"),
        (line(task_id="b", reference_tests=[1]), "`reference_tests` is a number; make it a string"),
        (line(task_id="b", reference_tests=["assert f(1) == 2"]), "give `gold_answer` instead"),
        (line(), "task_id `a` is already on line 1"),
        (line(task_id="b").replace('"5"', "NaN"), "NaN is not JSON"),
        (line(task_id="b").replace('"5"', "-Infinity"), "-Infinity is not JSON"),
        (line(task_id="b").replace('"5"', "9" * 5000), "not JSON"),
        (line(task_id="b").replace('"prompt"', '"task_id": "c", "prompt"'), "field `task_id` is there twice"),
        (line(task_id="b", gold_answer="five"), "`gold_answer` 'five' is not a number"),
        (without("task_id", "gold_answer").replace("{", '{"task_id": "b", '), "`gold_answer` is missing"),
        (line(task_id="b", prompt="\ud800"), "surrogate"),
        (b'{"task_id": "\xff"}\n', "not UTF-8"),
        (b"[" * 100_000 + b"\n", "not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path, bad, problem):
    data = line().encode() + b"\n" + (bad if isinstance(bad, bytes) else bad.encode())
    with pytest.raises(TaskError) as error:
        read(tmp_path, data)
    assert str(error.value).startswith(f"{tmp_path / 'tasks.jsonl'}:3: ")
    assert problem in str(error.value)


@pytest.mark.parametrize("data", ["", "\n \n", "\ufeff"])
def test_a_file_without_tasks_is_refused(tmp_path, data):
    with pytest.raises(TaskError, match=r"tasks\.jsonl: holds no task"):
        read(tmp_path, data)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(TaskError, match=r"absent\.jsonl: cannot be read"):
        read_tasks(tmp_path / "absent.jsonl")
    with pytest.raises(TaskError, match="cannot be read"):
        read_tasks(tmp_path)


def test_unknown_task_types_are_refused():
    with pytest.raises(TaskError, match="`gsm9k` is unknown; available: sort, gsm8k"):
        check_task_type("gsm9k")


text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
tasks = st.builds(
    Task,
    task_id=text,
    prompt=text,
    task_type=st.just("sort"),
    gold_answer=text,
    starter_code=st.none() | text,
)


@given(st.lists(tasks, min_size=1, max_size=5, unique_by=lambda t: t.task_id))
def test_what_is_written_is_read_back(tmp_path_factory, written):
    path = tmp_path_factory.getbasetemp() / "round_trip.jsonl"
    write_tasks(path, written)
    assert read_tasks(path) == written


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
almost = st.dictionaries(st.sampled_from([*GOOD, "reference_tests", "starter_code", "x"]), json_values)


@given(st.binary() | st.lists(almost.map(json.dumps)).map("\n".join).map(str.encode))
def test_arbitrary_bytes_give_tasks_or_a_task_error(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "arbitrary.jsonl"
    path.write_bytes(data)
    with suppress(TaskError):
        assert all(task.task_type in AVAILABLE for task in read_tasks(path))
