"""Reward workers behind a real sshd, on the loopback interface."""

import os
import shutil
import socket
import subprocess
import time
from contextlib import closing
from getpass import getuser
from pathlib import Path

import psutil
import pytest

from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.shards.pool import ShardedRewards
from async_rollout.tasks.jsonl import write_tasks
from async_rollout.tasks.task import Task

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None or os.getuid() != 0,
    reason="reward workers over ssh are NOT TESTED: no root, or no sshd (apt-get install openssh-server)",
)


@pytest.fixture
def ssh_options(tmp_path):
    """Arguments with which ssh gets into an sshd that lives as long as the test."""
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(command, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (tmp_path / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {tmp_path}/host\nPidFile none\nStrictModes no\n"
        f"AuthorizedKeysFile {tmp_path}/user.pub\nPasswordAuthentication no\nPermitRootLogin yes\nUsePAM no\n"
    )
    with (tmp_path / "sshd.log").open("w") as log:
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(tmp_path / "sshd_config")], stderr=log)
    try:
        wait_until(lambda: "listening" in (tmp_path / "sshd.log").read_text(), 30)
        known = ["-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR"]
        yield ["-F", "none", "-p", str(port), "-i", str(tmp_path / "user"), *known]
    finally:
        server.kill()
        server.wait()


def wait_until(true, seconds):
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < seconds
        time.sleep(0.05)


def workers(root: Path) -> list[psutil.Process]:
    """The workers themselves, not the ssh that waits for them."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if command[1:3] == ["-m", "async_rollout.rewards.shards.worker"] and str(root) in command:
            found.append(process)
    return found


def test_answers_are_judged_behind_ssh_also_when_a_worker_is_killed_there(tmp_path, ssh_options):
    write_tasks(tmp_path / "tasks.jsonl", [Task(f"t{i}", f"say {i}", "gsm8k", str(i)) for i in range(40)])
    root = tmp_path / "shared"
    config = RewardConfig(
        backend="file_shards", workers=2, hosts=[f"{getuser()}@127.0.0.1"], ssh_options=ssh_options
    )
    with closing(ShardedRewards([tmp_path / "tasks.jsonl"], config, root)) as rewards:
        rewards.start()
        rewards.wait_ready(120)
        remote = workers(root)
        assert len(remote) == 2
        assert all("sshd" in {parent.name() for parent in worker.parents()} for worker in remote)
        for i in range(40):
            rewards.submit(i, f"t{i}", f"#### {i if i % 2 else i + 1}")
        remote[0].kill()
        found = {}

        def all_judged() -> bool:
            found.update(rewards.poll())
            return len(found) == 40

        wait_until(all_judged, 120)
        assert [found[i].verdict for i in range(40)] == ["pass" if i % 2 else "fail" for i in range(40)]
        wait_until(lambda: rewards.poll() == [] and rewards.replaced, 20)
    wait_until(lambda: not workers(root), 20)
