"""The supervisor: who is ready, who died and why, and that none is left, whatever state they are in."""

import time

import psutil
import pytest

from async_rollout.channels import pair
from async_rollout.config.supervision import SupervisionConfig
from async_rollout.runtime.supervisor import SetupTimeout, Supervisor, WorkerDied


@pytest.fixture
def make(tmp_path):
    """A supervisor with patience of its own; stopped after the test, with nobody left."""
    made, before = [], set(psutil.Process().children())

    def supervisor(**patience) -> Supervisor:
        made.append(Supervisor(SupervisionConfig(**{"shutdown_sec": 1.0} | patience), tmp_path))
        return made[-1]

    yield supervisor
    for each in made:
        each.stop()
    left = set(psutil.Process().children()) - before
    assert not [p for p in left if "resource_tracker" not in " ".join(p.cmdline())]


def start(supervisor: Supervisor, role: str, body: str, **arguments):
    return supervisor.start(role, f"stage_workers:{body}", threads=1, **arguments)


def hear(supervisor: Supervisor, worker, seconds: float = 10) -> list:
    """The next messages of one worker; any other's death is noticed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        supervisor.poll([], 0.1)
        for each in supervisor.workers:
            if (messages := supervisor.receive(each)) and each is worker:
                return messages
    raise TimeoutError


def test_messages_go_both_ways_and_stop_is_quick(make, tmp_path):
    supervisor = make()
    workers = [start(supervisor, f"echo-{i}", "serves") for i in range(2)]
    supervisor.wait_ready()
    supervisor.send(workers[1], "hello")
    assert hear(supervisor, workers[1]) == ["hello"]
    processes = [psutil.Process(w.process.pid) for w in workers]
    begun = time.monotonic()
    supervisor.stop()
    assert time.monotonic() - begun < 1
    assert not any(p.is_running() for p in processes)
    assert (tmp_path / "stderr.log").read_text() == ""
    supervisor.stop()  # once more does no harm


def test_a_worker_that_fails_to_build_is_named_with_its_traceback(make, tmp_path):
    supervisor = make()
    start(supervisor, "echo-0", "serves")
    start(supervisor, "bad-0", "raises")
    with pytest.raises(WorkerDied, match=r"(?s)bad-0 failed:.*in raises.*the weights do not fit"):
        supervisor.wait_ready()
    assert "the weights do not fit" in (tmp_path / "stderr.log").read_text()


def test_a_target_that_cannot_be_imported_is_named(make):
    supervisor = make()
    start(supervisor, "bad-0", "no_such_function")
    with pytest.raises(WorkerDied, match=r"(?s)bad-0 failed:.*no_such_function"):
        supervisor.wait_ready()


def test_who_is_not_ready_in_time_is_named(make, capsys):
    supervisor = make(setup_timeout_sec=3.0, setup_poll_sec=0.5, shutdown_sec=5.0)
    start(supervisor, "echo-0", "serves")
    start(supervisor, "slow-0", "never_ready")
    begun = time.monotonic()
    with pytest.raises(SetupTimeout, match=r"not ready after 3 s: slow-0; .*setup_timeout_sec"):
        supervisor.wait_ready()
    assert "waiting for slow-0" in capsys.readouterr().err
    supervisor.stop()
    assert time.monotonic() - begun < 6, "one that still builds is not waited for"


def test_a_death_during_set_up_is_noticed_at_once(make):
    """Also of one that was ready, while another still builds."""
    supervisor = make()
    victim = start(supervisor, "victim-0", "serves")
    start(supervisor, "slow-0", "never_ready")
    deadline = time.monotonic() + 10
    while not victim.channel.receive() and time.monotonic() < deadline:
        time.sleep(0.01)
    victim.ready = True
    victim.process.kill()
    begun = time.monotonic()
    with pytest.raises(WorkerDied, match=rf"victim-0 \(pid {victim.process.pid}\) killed by signal 9"):
        supervisor.wait_ready()
    assert time.monotonic() - begun < 2


def test_what_came_with_ready_is_heard_later(make):
    supervisor = make()
    worker = start(supervisor, "echo-0", "serves")
    supervisor.wait_ready()
    worker.unheard = ["early"]
    supervisor.send(worker, "late")
    heard = []
    while len(heard) < 2:
        heard += hear(supervisor, worker)
    assert heard == ["early", "late"]


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("dies", {}, r"bad-0 \(pid \d+\) killed by signal 9"),
        ("raises", {"when_told": True}, r"(?s)bad-0 failed:.*the weights do not fit"),
    ],
)
def test_a_death_in_mid_run_is_named(make, body, arguments, expected):
    supervisor = make()
    worker = start(supervisor, "bad-0", body, **arguments)
    supervisor.wait_ready()
    supervisor.send(worker, "now")
    with pytest.raises(WorkerDied, match=expected):
        hear(supervisor, worker)


@pytest.mark.parametrize("first", ["cause", "consequence"])
def test_the_first_cause_is_named_first(make, first):
    """Not the process that ended because its peer did, which is gone sooner."""
    supervisor = make()
    ours, theirs = pair()
    bodies = {"cause": ("raises_with_peer", ours), "consequence": ("depends", theirs)}
    order = sorted(bodies, key=lambda role: role != first)
    workers = {role: start(supervisor, f"{role}-0", bodies[role][0], peer=bodies[role][1]) for role in order}
    supervisor.wait_ready()
    supervisor.send(workers["cause"], "now")
    with pytest.raises(WorkerDied, match=r"(?s)\Acause-0 .*the weights do not fit.*consequence-0 .*code 3"):
        hear(supervisor, workers["cause"])


def test_stop_ends_those_who_do_not_listen(make):
    """One that ignores word and SIGTERM, with a full pipe; one that still builds; one already dead."""
    supervisor = make(shutdown_sec=0.5)
    deaf = start(supervisor, "deaf-0", "deaf")
    dead = start(supervisor, "dead-0", "serves")
    supervisor.wait_ready()
    start(supervisor, "slow-0", "never_ready")
    supervisor.send(deaf, bytes(3_000_000))
    assert deaf.channel.unsent
    dead.process.kill()
    processes = [psutil.Process(w.process.pid) for w in supervisor.workers]
    begun = time.monotonic()
    supervisor.stop()
    assert time.monotonic() - begun < 5
    assert not any(p.is_running() for p in processes)
