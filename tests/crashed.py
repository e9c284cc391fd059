"""A run of mode areal that is killed, stopped, damaged and bereaved, and comes to its end.

Each attempt is a process of its own; what lies in the cell's directory is all that the next one knows.
"""

import json
import os
import signal

from async_rollout.runtime import checkpoint
from runs import START_SEC, Run, wait_until

UPDATES = 160
SETTINGS = {"k": 2, "rollout": {"workers": 2, "slots": 8, "min_decode_steps": 2}, "checkpoint": {"every": 20}}


def crash(start) -> tuple[dict, Run]:
    """(what the attempts left and said, by name; the last of them). Three at one run."""
    seen = {}
    run = start(updates=UPDATES, **SETTINGS)
    run.wait_for_commits(30)
    run.process.kill()
    run.process.wait()
    wait_until(lambda: not run.left(), 10)
    seen["killed at"] = run.commits()
    seen["newest"] = checkpoint.checkpoints(run.out)[0].name

    run = start(updates=UPDATES, out=run.out, **SETTINGS)
    wait_until(lambda: "goes on from" in run.text(), START_SEC)
    seen["second"] = run.text()
    run.wait_for_commits(seen["killed at"] + 25)
    os.killpg(run.process.pid, signal.SIGUSR1)  # as a cluster does: to every process
    seen["code"], _ = run.end()
    seen["stopped at"] = run.commits()
    seen["kept"] = [place.name for place in checkpoint.checkpoints(run.out)]
    seen["lines"] = (run.out / "metrics.jsonl").read_text().splitlines()
    (run.out / "checkpoint" / seen["kept"][0] / checkpoint.TRAINING).write_bytes(b"torn")
    with (run.out / "results.jsonl").open("a") as file:
        file.write('{"group": 17, "sam')

    run = start(updates=UPDATES, out=run.out, **SETTINGS)
    wait_until(lambda: "goes on from" in run.text(), START_SEC)
    run.wait_for_commits(seen["stopped at"] + 10)
    run.worker("rollout-0").kill()
    assert run.process.wait(timeout=START_SEC) == 0, run.text()
    wait_until(lambda: not run.left(), 10)
    return seen, run


def rows(run: Run, name: str) -> list[dict]:
    """Of a file in the run's directory."""
    return [json.loads(line) for line in (run.out / name).read_text().splitlines()]
