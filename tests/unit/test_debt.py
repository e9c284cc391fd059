"""Who is blamed when the trainer does not answer in time, and who is not."""

from types import SimpleNamespace

import pytest

from async_rollout.config.supervision import SupervisionConfig
from async_rollout.runtime import debt as debts
from async_rollout.runtime import messages as say
from async_rollout.runtime.debt import Debt, WorkerHung

ROLES = ("parameter_service-0", "trainer-0", "trainer-1", "rollout-0")


class Stage:
    """Four workers, a clock to be set, and what was sent to whom."""

    def __init__(self, monkeypatch):
        self.now, self.sent, self.stopped = 100.0, [], set()
        monkeypatch.setattr(debts, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(debts, "_is_stopped", lambda worker: worker.role in self.stopped)
        workers = [SimpleNamespace(role=r, process=SimpleNamespace(pid=7 + i)) for i, r in enumerate(ROLES)]
        supervisor = SimpleNamespace(
            workers=workers, send=lambda worker, message: self.sent.append((worker.role, message))
        )
        self.debt = Debt(supervisor, SupervisionConfig(step_timeout_sec=60, shutdown_sec=5))

    def after(self, seconds: float) -> None:
        self.now += seconds
        self.debt.check()


@pytest.fixture
def stage(monkeypatch):
    return Stage(monkeypatch)


def test_who_owes_nothing_may_be_silent_for_ever(stage):
    stage.after(1e6)
    stage.debt.begin()
    stage.after(59)
    stage.debt.end()
    stage.after(1e6)
    assert stage.sent == []


def test_every_debt_begins_anew(stage):
    stage.debt.begin()
    stage.after(59)
    stage.debt.begin()
    stage.after(59)
    assert stage.sent == []


def test_the_service_is_asked_first_and_blamed_if_it_is_silent_too(stage):
    stage.debt.begin()
    stage.after(61)
    assert stage.sent == [("parameter_service-0", say.Ping())]
    stage.after(4)
    with pytest.raises(WorkerHung, match=r"parameter_service-0 \(pid 7\) hangs.*step_timeout_sec \(60 s\)"):
        stage.after(2)
    assert len(stage.sent) == 1


@pytest.mark.parametrize(
    ("stopped", "blamed"),
    [
        (set(), r"trainer-0 \(pid 8\), trainer-1 \(pid 9\) hangs"),
        ({"trainer-1"}, r"^trainer-1 \(pid 9\) hangs"),
    ],
)
def test_else_it_is_a_trainer_the_one_that_was_stopped_if_that_is_known(stage, stopped, blamed):
    """Trainers wait for each other: the silence of the first may be another one's fault."""
    stage.stopped = stopped
    stage.debt.begin()
    stage.after(61)
    with pytest.raises(WorkerHung, match=blamed):
        stage.debt.service_is_there()


def test_an_answer_that_comes_while_the_service_is_asked_is_in_time(stage):
    stage.debt.begin()
    stage.after(61)
    stage.debt.end()
    stage.debt.service_is_there()
    stage.after(1e6)
    assert stage.sent == [("parameter_service-0", say.Ping())], "nobody is asked again"
