"""One cell from start to `summary.json`, which is written last and only if all went well."""

import shlex
import shutil
import sys
import traceback
from contextlib import closing
from importlib import import_module
from pathlib import Path

from async_rollout.config.axes import MODES
from async_rollout.config.run import RunConfig
from async_rollout.policy.prompt import rendered
from async_rollout.policy.registry import build_codec
from async_rollout.records.events import chrome_trace, read_events
from async_rollout.records.files import reserve, write_json, write_record, write_text
from async_rollout.runners.attempts import begin_attempt
from async_rollout.runners.occupancy import occupied
from async_rollout.runners.summarize import summarize
from async_rollout.runtime import checkpoint
from async_rollout.runtime.failure import last_line, reason_of
from async_rollout.runtime.keeper import Keeper
from async_rollout.runtime.process import limit_threads
from async_rollout.runtime.progress import Progress
from async_rollout.runtime.recorder import Recorder
from async_rollout.runtime.stopping import Stopping
from async_rollout.tasks.splits import read_splits

RUNNERS = {mode: f"async_rollout.runners.{mode}" for mode in MODES} | {
    "async": "async_rollout.runners.threaded"  # the mode's name is a word of Python
}

_LAST_WORDS = 1 << 16  # bytes for a traceback and a state


def run_cell(config: RunConfig, *, out: Path, data: Path, model: Path | None = None) -> None:
    """Train the cell into the directory `out`, on the tasks in `data` (see tasks/prepare.py).

    `model` is the directory of the embedded model, where `model.id` asks for it; the summary
    keeps the configuration as it was given. Earlier attempts' files are kept (attempts.py).
    Raises what stopped the run; no process is left either way. ConfigError if a run is at work there.
    """
    with occupied(out):
        _attempt(config, out, data, model)


def _attempt(config: RunConfig, out: Path, data: Path, model: Path | None) -> None:
    attempt = begin_attempt(out, config)
    stopping = Stopping(config.checkpoint.grace_sec)
    keeper = Keeper(out, config.checkpoint, stopping, attempt.place, attempt.state)
    write_text(out / "command.txt", shlex.join(sys.argv) + "\n")
    limit_threads(config.train.threads)
    name = f"{config.dataset} {out.name}"
    progress = Progress(name, config.train.updates, config.supervision.heartbeat_sec, out, attempt.number)
    progress.enter("setting up")
    if attempt.state:
        progress.say(f"goes on from version {attempt.state.version}, {attempt.lost_sec:.1f} s of work undone")
    (out / "stderr.log").touch()
    reserve(room := out / ".room", _LAST_WORDS)
    try:
        with stopping.heeded():
            loaded = with_model(config, model).placed()
            codec = build_codec(loaded)
            tasks = read_splits(data, config.data).train
            prompts = {task.task_id: rendered(codec, task, config.prompt) for task in tasks}
            with closing(Recorder(out, prompts, attempt.state)) as recorder:
                runner = import_module(RUNNERS[config.mode])
                outcome = runner.run(loaded, out, data, recorder, progress, keeper)
        events = read_events(out / "trace")
        write_json(out / "trace.json", chrome_trace(events, outcome.started), indent=None)
        shutil.rmtree(out / "trace")
        programs = any(task.task_type == "coding" for task in tasks)
        summary = summarize(config, recorder, outcome, events, attempt, programs=programs)
        write_record(out / "summary.json", summary.model_dump(mode="json"))
        checkpoint.remove(out)
        progress.enter(summary.status)
        if summary.empty_updates == summary.updates:
            progress.say("nothing was learned: no update had samples of differing reward; see results.jsonl")
        progress.say(
            f"done in {summary.wall_clock_sec:.1f} s (and {summary.setup_wall_clock_sec:.1f} s set-up)"
        )
    except BaseException as error:
        reason = reason_of(error)
        checkpoint.discard(out)
        room.unlink()  # a full disk must be told of
        with (out / "stderr.log").open("a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
        progress.enter("failed", reason, last_line(error))
        raise
    finally:
        room.unlink(missing_ok=True)
        progress.close()


def with_model(config: RunConfig, directory: Path | None) -> RunConfig:
    """The configuration with `model.id: embedded` replaced by the directory it was built in."""
    if directory is None:
        return config
    return config.model_copy(update={"model": config.model.model_copy(update={"id": str(directory)})})
