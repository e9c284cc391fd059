"""Whole groups from one engine: prompts in order, slots refilled, unjudged groups drawn anew."""

import numpy as np
import pytest

from async_rollout.config.prompt import PromptConfig
from async_rollout.policy.tabular import TabularPolicy
from async_rollout.runners.generator import Generator
from async_rollout.runtime.recorder import Recorder
from async_rollout.tasks import sort
from async_rollout.tasks.prompts import prompt_text
from async_rollout.types import Prompt, Verdict
from tiny_cells import cell_config


class Judges:
    """Stands in for the reward pool: judges at once; the first answer to `fails` it cannot judge."""

    def __init__(self, fails: str | None = None):
        self.fails = fails
        self.answers: list = []

    def submit(self, key, task_id, text):
        self.answers.append((key, task_id, text))

    def poll(self):
        done, self.answers = self.answers, []
        return [(key, self.verdict(task_id, text)) for key, task_id, text in done]

    def verdict(self, task_id: str, text: str) -> Verdict:
        if task_id == self.fails:
            self.fails = None
            return Verdict(float("nan"), "infrastructure", infrastructure=True)
        return Verdict(float(len(text)), "fail", text)


@pytest.fixture
def make(tmp_path):
    tasks, _ = sort.generate(6, 1, seed=0)

    def generator(judges: Judges, **rollout) -> Generator:
        config = cell_config(mode="sync", k=0, rollout=rollout)
        policy = TabularPolicy(config, tasks)
        prompts = [Prompt(t.task_id, policy.codec.encode(prompt_text(t, PromptConfig()))) for t in tasks]
        generator = Generator(config, policy, prompts, judges, recorder, lambda text: None)
        generator.tasks = tasks
        return generator

    recorder = Recorder(tmp_path, {t.task_id: prompt_text(t, PromptConfig()) for t in tasks})
    yield generator, recorder
    recorder.close()


def test_groups_are_whole_in_order_and_through_the_epochs(make):
    """B = 4 of 6 prompts: the second batch spans two epochs, and each epoch has every prompt once."""
    generator, recorder = make
    drawn = generator(Judges())
    batches = [drawn.batch(version) for version in range(3)]
    groups = [group for batch in batches for group in batch]
    assert [g.number for g in groups] == list(range(12))
    for epoch in (groups[:6], groups[6:]):
        assert {g.task_id for g in epoch} == {t.task_id for t in drawn.tasks}
    for version, batch in enumerate(batches):
        for group in batch:
            assert [s.trajectory.id.sample for s in group.samples] == [0, 1, 2, 3]
            assert all((s.trajectory.versions == version).all() for s in group.samples)
            assert all(s.verdict.extracted == s.text for s in group.samples), "a verdict of another answer"
    assert recorder.totals.submitted == 12
    assert recorder.totals.samples["generated"] == 48


def test_slots_change_nothing_but_the_order_of_work(make):
    """Fewer slots than samples: the same samples, as their streams do not depend on the slot."""
    generator, recorder = make
    one = generator(Judges(), slots=3).batch(0)
    recorder.totals.submitted = 0
    other = generator(Judges(), slots=16).batch(0)
    for a, b in zip(one, other, strict=True):
        for s, t in zip(a.samples, b.samples, strict=True):
            assert np.array_equal(s.trajectory.response_ids, t.trajectory.response_ids)


def test_what_nobody_could_judge_is_drawn_anew(make):
    generator, recorder = make
    probe = generator(Judges())
    failing = probe.batch(0)[1].task_id
    recorder.totals.submitted = 0
    batch = generator(Judges(fails=failing)).batch(0)
    assert [g.number for g in batch] == [0, 2, 3, 4]
    assert recorder.totals.groups == {"infrastructure": 1}
    assert recorder.totals.infrastructure_failures == 1
    assert all(not s.verdict.infrastructure for g in batch for s in g.samples)
