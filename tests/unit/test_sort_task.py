import numpy as np
import pytest

from async_rollout.tasks import sort


def test_gold_is_the_mark_and_the_digits_in_order():
    train, held_out = sort.generate(200, 50, seed=1)
    assert (len(train), len(held_out)) == (200, 50)
    for task in train + held_out:
        digits = task.prompt.removesuffix(">")
        assert 6 <= len(digits) <= 10
        assert digits.isdigit()
        assert task.gold_answer == "#" + "".join(sorted(digits))
        assert task.task_type == "sort"


def test_lengths_and_digits_are_all_drawn():
    train, _ = sort.generate(500, 1, seed=0)
    assert {len(t.prompt) - 1 for t in train} == {6, 7, 8, 9, 10}
    counts = np.bincount([int(c) for t in train for c in t.prompt[:-1]], minlength=10)
    assert counts.min() > 0.8 * counts.mean()


def test_prompts_are_distinct_and_a_seed_repeats():
    train, held_out = sort.generate(300, 100, seed=3)
    prompts = [t.prompt for t in train + held_out]
    assert len(set(prompts)) == len(prompts)
    assert len({t.task_id for t in train + held_out}) == len(prompts)
    assert sort.generate(300, 100, seed=3) == (train, held_out)
    assert sort.generate(300, 100, seed=4)[0] != train


def test_prompts_are_distinct_also_where_there_are_few(monkeypatch):
    monkeypatch.setattr(sort, "SHORTEST", 2)
    monkeypatch.setattr(sort, "LONGEST", 2)
    train, held_out = sort.generate(50, 5, seed=0)
    assert len({t.prompt for t in train + held_out}) == 55


def test_a_larger_size_only_adds_tasks_to_its_split():
    small = sort.generate(20, 5, seed=7)
    large = sort.generate(50, 40, seed=7)
    assert large[0][:20] == small[0]
    assert large[1][:5] == small[1]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_answer_of_the_eval_split_is_trained_or_demonstrated_under_any_seed(seed):
    held_out = {t.gold_answer for s in range(4) for t in sort.generate(1, 300, seed=s)[1]}
    train = {t.gold_answer for t in sort.generate(2000, 1, seed=seed)[0]}
    shown = {
        "#" + "".join(sorted(prompt[:-1]))
        for prompt, _ in sort.demonstrations(np.random.default_rng(seed), 2000, 0.25, 0.3)
    }
    assert not held_out & train
    assert not held_out & shown


def test_demonstrations_are_marked_and_corrupted_as_often_as_asked():
    pairs = sort.demonstrations(np.random.default_rng(5), 4000, marked_share=0.25, corrupted_share=0.3)
    marked = [answer.startswith("#") for _, (answer,) in pairs]
    wrong = [answer.removeprefix("#") != "".join(sorted(prompt[:-1])) for prompt, (answer,) in pairs]
    assert np.mean(marked) == pytest.approx(0.25, abs=0.03)
    assert np.mean(wrong) == pytest.approx(0.3, abs=0.03)
    both = np.mean(np.logical_and(marked, wrong))
    assert both == pytest.approx(0.25 * 0.3, abs=0.02)


def test_a_corrupted_answer_is_one_edit_away():
    pairs = sort.demonstrations(np.random.default_rng(6), 500, marked_share=0.0, corrupted_share=1.0)
    kinds = set()
    for prompt, (answer,) in pairs:
        right = "".join(sorted(prompt[:-1]))
        assert answer != right
        if len(answer) == len(right) - 1:
            kinds.add("dropped")
            assert any(right[:i] + right[i + 1 :] == answer for i in range(len(right)))
        else:
            differ = [i for i in range(len(right)) if answer[i] != right[i]]
            kinds.add("replaced" if len(differ) == 1 else "swapped")
            assert len(differ) == 1 or (differ[1] == differ[0] + 1 and sorted(answer) == sorted(right))
    assert kinds == {"dropped", "replaced", "swapped"}


def test_demonstrations_repeat_with_their_generator():
    first = sort.demonstrations(np.random.default_rng(9), 50, 0.25, 0.3)
    assert sort.demonstrations(np.random.default_rng(9), 50, 0.25, 0.3) == first
