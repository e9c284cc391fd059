"""Programs that want to do harm: judged wrong, in time, and nothing of them is left."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.code import CodeJudge
from async_rollout.rewards.sandbox import client
from async_rollout.rewards.sandbox.client import Sandbox, SandboxError
from async_rollout.tasks.task import Task
from hostile import HOSTILE

TASK = Task("t", "next", "coding", None, ("assert f(1) == 2", "assert f(9) == 10"))
ALONE = Task("t", "next", "coding", None, ("y = f(1)\nassert y == 2 or y == 3",))
CALL = [{"setup": "", "expression": "f(1)"}]
RIGHT = "def f(x):\n    return x + 1"
SECONDS = 0.6
VERDICTS = {
    "loop": "timeout",
    "sleep": "timeout",
    "loop while it loads": "timeout",
    "signals ignored": "timeout",
    "endless output": "output_limit",
    "output while it loads": "output_limit",
    "a long value": "output_limit",
    "100 GB": "memory_limit",
    "memory bit by bit": "memory_limit",
    "fork bomb": "runtime_error",
    "socket": "runtime_error",
    "another file": "runtime_error",
    "leave with 0": "runtime_error",
    "crash": "runtime_error",
    "equal to everything": "fail",
    "an int equal to everything": "fail",
    "forged verdict on standard output": "fail",
}
LIES = ("equal to everything", "an int equal to everything", "a class that says it is int")


def sandboxes(level):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "LEVELS", (level,))
        try:
            return CodeJudge(RewardConfig(code_timeout_sec=SECONDS, sandbox=level))
        except SandboxError as error:
            pytest.skip(str(error))


@pytest.fixture(scope="module", params=["isolated", pytest.param("filtered", marks=pytest.mark.long)])
def judge(request):
    made = sandboxes(request.param)
    yield made
    pids = tree(made)
    made.close()
    assert not psutil.wait_procs([p for p in pids if p.is_running()], timeout=5)[1]


def tree(judge):
    server = psutil.Process(judge.sandbox.pid)
    return [server, *server.children(recursive=True)]


def answer(program):
    return f"```python\n{program}\n```"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs_are_wrong_in_time_and_leave_nothing(judge, name):
    verdict = judged_without_harm(judge, TASK, HOSTILE[name])
    assert (verdict.reward, verdict.compared) == (0.0, None)
    assert verdict.verdict == VERDICTS.get(name, verdict.verdict)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in HOSTILE if name not in LIES])
def test_so_are_they_beside_tests_that_are_decided_inside(judge, name):
    verdict = judged_without_harm(judge, ALONE, HOSTILE[name])
    assert (verdict.reward, verdict.compared) == (0.0, "inside")


def judged_without_harm(judge, task, program):
    assert judge(task, answer(RIGHT)).verdict == "pass"
    before = tree(judge)
    memory = sum(p.memory_info().rss for p in [psutil.Process(), *before])
    begun = time.monotonic()
    verdict = judge(task, answer(program))
    assert time.monotonic() - begun < SECONDS + 1.0
    assert not verdict.correct
    assert tree(judge) == before
    assert sum(p.memory_info().rss for p in [psutil.Process(), *before]) - memory < 20 << 20
    assert judge(task, answer(RIGHT)).verdict == "pass"
    return verdict


def test_a_program_sees_no_answers_no_environment_and_no_other_descriptor(judge):
    looks = (
        "import gc, os, sys\ndef f(x):\n    seen = [dict(os.environ), sys.argv, sys.path]\n"
        "    for fd in range(4, 300):\n        try:\n            os.fstat(fd)\n            seen.append(fd)\n"
        "        except OSError:\n            pass\n    return seen, os.getuid()"
    )
    ran = judge.sandbox.run(looks, CALL, seconds=SECONDS)
    assert b"async_rollout" not in ran.lines[1]
    assert b'{"value": {"t": [{"l": [{"d": []}, {"l": ["-c"]}, {"l": [' in ran.lines[1]
    assert b"}, 4" not in ran.lines[1]


def test_files_of_a_program_are_gone_for_the_next(judge):
    if judge.sandbox.level == "filtered":
        pytest.skip("filtered programs cannot write at all")
    writes = (
        "import os\ndef f(x):\n    before = os.listdir('/tmp')\n    os.makedirs('/tmp/a/b')\n"
        "    open('/tmp/a/b/c', 'w').write('x')\n    return before, os.listdir('/tmp')"
    )
    for _ in range(3):
        ran = judge.sandbox.run(writes, CALL, seconds=SECONDS)
        assert ran.lines[1] == b'{"value": {"t": [{"l": []}, {"l": ["a"]}]}}'


def test_a_server_that_dies_is_our_failure_and_the_next_program_has_a_new_one(judge):
    first = judge.sandbox.pid
    for process in tree(judge):
        process.send_signal(signal.SIGKILL)
    with pytest.raises(SandboxError, match="has died"):
        judge(TASK, answer(RIGHT))
    assert judge(TASK, answer(RIGHT)).correct
    assert judge.sandbox.pid != first


def test_a_server_that_is_stopped_is_our_failure(judge):
    for process in tree(judge):
        process.send_signal(signal.SIGSTOP)
    with pytest.raises(SandboxError, match="does not answer"):
        judge(TASK, answer(RIGHT))
    assert judge(TASK, answer(RIGHT)).correct


OWNER = """
import sys, time
from async_rollout.rewards.sandbox.client import Sandbox
sandbox = Sandbox()
print(sandbox.pid, flush=True)
if sys.argv[1] == "busy":
    sandbox.run("while True: pass", [], seconds=60)
time.sleep(60)
"""


@pytest.mark.parametrize("doing", ["busy", "idle"])
def test_nothing_outlives_an_owner_that_is_killed(doing):
    owner = subprocess.Popen([sys.executable, "-c", OWNER, doing], stdout=subprocess.PIPE)
    server = psutil.Process(int(owner.stdout.readline()))
    time.sleep(0.5)
    left = [server, *server.children(recursive=True)]
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert not psutil.wait_procs(left, timeout=5)[1]


def test_less_than_the_configured_minimum_is_refused(monkeypatch):
    def refused(self, level):
        raise SandboxError("not permitted")

    monkeypatch.setattr(Sandbox, "_start", refused)
    with pytest.raises(
        SandboxError, match=r"isolated: not permitted\. Code tasks .*reward\.sandbox = isolated"
    ):
        Sandbox("isolated")
    with pytest.raises(SandboxError, match="isolated: not permitted; filtered: not permitted"):
        Sandbox("filtered")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_it_works_for_an_ordinary_user():
    python = "/usr/bin/python3"
    code = (
        "import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "sys.path.insert(0, os.environ['SRC'])\n"
        "from async_rollout.rewards.sandbox.client import Sandbox\n"
        "s = Sandbox(); program = 'import os\\ndef f(x): return os.getuid()'\n"
        "print(s.level, s.run(program, [{'setup': '', 'expression': 'f(1)'}], seconds=5).lines)"
    )
    source = os.path.dirname(os.path.dirname(client.async_rollout.__file__))
    if not (os.path.exists(python) and os.stat(source).st_mode & 5):
        pytest.skip("no Python that everybody may run")
    ran = subprocess.run(
        [python, "-c", code], env={"SRC": source}, capture_output=True, text=True, timeout=60
    )
    assert ran.stderr == ""
    assert ran.stdout.split()[0] in client.LEVELS
    assert '{"value": 65534}' in ran.stdout
