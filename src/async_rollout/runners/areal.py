"""Mode `areal`: rollout, training and publication in processes of their own.

Generation never waits for training but for the staleness bound; training never waits for
generation but for a full batch.
"""

import time
from contextlib import ExitStack
from pathlib import Path

from async_rollout.channels import pair
from async_rollout.config.run import RunConfig
from async_rollout.policy.prompt import encode_prompts
from async_rollout.policy.registry import build_codec
from async_rollout.policy.room import check_room
from async_rollout.records.events import Events, Stretches
from async_rollout.rewards.backend import build_rewards
from async_rollout.rewards.delayed import held_back
from async_rollout.runners.outcome import Outcome
from async_rollout.runtime.controller import Controller
from async_rollout.runtime.examiner import Examiner
from async_rollout.runtime.keeper import Keeper
from async_rollout.runtime.process import settle
from async_rollout.runtime.progress import Progress
from async_rollout.runtime.recorder import Recorder
from async_rollout.runtime.resources import ResourceLog
from async_rollout.runtime.snapshots import discard_snapshots
from async_rollout.runtime.supervisor import Supervisor, Worker
from async_rollout.runtime.trainers import start_trainers
from async_rollout.runtime.weights import WeightStore, open_weights
from async_rollout.tasks.splits import read_splits, split_paths


def run(
    config: RunConfig,
    out: Path,
    data: Path,
    recorder: Recorder,
    progress: Progress,
    keeper: Keeper,
    crew: type[Supervisor] = Supervisor,
) -> Outcome:
    """Run to the last commit, evaluate the snapshots, end every process."""
    created = time.monotonic()
    splits = read_splits(data, config.data)
    # A resumed trainer publishes the next version first.
    store = open_weights(config, out, max(0, keeper.version - 1))
    supervisor = crew(config.supervision, out)
    rewards = held_back(build_rewards(split_paths(data), config.reward, out), config)
    with ExitStack() as stack:  # each is closed whatever happens to the others, the last one first
        stack.callback(store.close)
        stack.callback(rewards.close)
        stack.callback(supervisor.stop)
        rewards.start()
        rollout, trainer = _start(supervisor, config, store, out, data, keeper.place)
        codec = build_codec(config)  # while the workers build their parts
        prompts, held_out = (
            encode_prompts(codec, tasks, config.prompt) for tasks in (splits.train, splits.held_out)
        )
        check_room(prompts + held_out, config)
        supervisor.wait_ready()
        rewards.wait_ready(config.supervision.setup_timeout_sec)
        spent = keeper.state.cpu_seconds if keeper.state else {}
        resources = ResourceLog(out / "resources.csv", supervisor.pids(), rewards.pids, spent)
        stack.callback(resources.close)
        work = Stretches(Events(out / "trace" / "controller-0.jsonl", "controller-0"), "control")
        stack.callback(work.close)
        settle()
        recorder.start()
        progress.enter("running")
        controller = Controller(
            config,
            prompts,
            supervisor,
            rollout,
            trainer,
            store,
            rewards,
            recorder,
            progress,
            resources,
            keeper,
            Examiner(
                config,
                out,
                splits.held_out,
                held_out,
                supervisor,
                rewards,
                recorder,
            ),
            work,
        )
        with keeper.patience():
            controller.run()
        ended, cpu_seconds, pauses = time.monotonic(), resources.cpu_seconds(), tuple(recorder.pauses)
        if config.train.save_model:
            controller.save_model()
        progress.enter("evaluating")
        progress.say("evaluating")
        controller.evaluate()
        evaluated, version = time.monotonic(), store.version
    discard_snapshots(out)
    return Outcome(
        version, controller.collapsed, created, recorder.started, ended, evaluated, cpu_seconds, pauses
    )


def _start(
    supervisor: Supervisor, config: RunConfig, store: WeightStore, out: Path, data: Path, resumed: Path | None
) -> tuple[list[Worker], Worker]:
    """Spawn all processes; returns the rollout workers and the trainer of rank 0."""
    resolved = config.model_dump(mode="json")
    to_service, to_trainer = pair()
    supervisor.start(
        "parameter_service-0",
        "async_rollout.runtime.parameter_service:main",
        threads=1,
        trainer=to_trainer,
        store=store,
    )
    trainer = start_trainers(supervisor, config, to_service, store, data, out, resumed)
    rollout = [
        supervisor.start(
            f"rollout-{index}",
            "async_rollout.runtime.rollout_worker:main",
            threads=config.rollout.threads,
            index=index,
            config=resolved,
            store=store,
            data=data,
        )
        for index in range(config.rollout.workers)
    ]
    return rollout, trainer
