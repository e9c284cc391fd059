"""What a cell asks of Slurm, and jobs that an earlier, killed driver left there.

Nothing here is a reason to run a cell again, and without Slurm nothing of it matters.
"""

import getpass
import signal
import subprocess
import time

from async_rollout.config.cluster import keeps_accounts

# A cluster signals every process of a job: Snakemake and the shell around a cell have to stay,
# since what is left of a job is killed when they go. The cell sets handlers of its own.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
shell.prefix("trap '' TERM; set -euo pipefail; ")

JOBNAME_PREFIX = "async-rollout"  # slurm-jobname-prefix of profiles/slurm
PATIENCE_SEC = 300  # for cancelled jobs to be gone: Slurm's KillWait and the epilog


def gpus_of(wildcards):
    """GPUs of a cell, 0 for one that computes on the CPU."""
    return run_of(wildcards).gpus


def on_gpus(value):
    """A resource that only cells with a GPU ask for."""
    return lambda wildcards: value if gpus_of(wildcards) else None


def requests():
    """The sweep's block `cluster` as resources; what is left out there is up to the profile.

    A GPU cell stays on one node: GPUs alone may be spread over several, whose step then fails.
    """
    asked = SWEEP.cluster
    resources = {
        "slurm_partition": asked.partition,
        "slurm_account": asked.account,
        "qos": asked.qos,
        "constraint": asked.constraint,
        "runtime": asked.runtime_min,
        "cpus_per_task": asked.cpus,
        "slurm_extra": asked.extra,
        "gpu_model": asked.gpu_model and on_gpus(asked.gpu_model),
        "nodes": on_gpus(1),
    }
    return {name: value for name, value in resources.items() if value is not None}


def slurm(*command):
    """What a Slurm command prints; WorkflowError with what it complained about."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise WorkflowError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def orphans():
    """Ids of this user's jobs that were submitted from this working directory."""
    rows = slurm("squeue", "-h", "-r", "-u", getpass.getuser(), "-o", "%i|%j|%Z")
    jobs = [row.split("|", 2) for row in rows.splitlines()]
    return [
        job
        for job, name, place in jobs
        if name.startswith(f"{JOBNAME_PREFIX}_")
        and os.path.realpath(place) == os.getcwd()
    ]


def cancel_orphans():
    """Cancel what an earlier driver left in the queue, and wait until it is gone.

    Snakemake does not find such jobs again. Left alone, one would run beside its successor, and
    delete the summary that this has written when it fails in its turn. The lock on the working
    directory says that no living driver owns them.
    """
    if shutil.which("squeue") is None:
        return
    try:
        left = orphans()
    except WorkflowError as error:
        if hasattr(
            workflow.executor_settings, "status_command"
        ):  # jobs are to go there
            raise
        print(f"Slurm does not answer and is not asked: {error}", file=sys.stderr)
        return
    if not left:
        return
    print(f"cancelling jobs of an earlier run: {' '.join(left)}", file=sys.stderr)
    slurm("scancel", *left)
    deadline = time.monotonic() + PATIENCE_SEC
    while left := orphans():
        if time.monotonic() > deadline:
            raise WorkflowError(f"jobs of an earlier run do not end: {' '.join(left)}")
        time.sleep(1)


def use_a_status_command_that_answers():
    """`sacct` is Snakemake's choice wherever it is installed, and without accounting it never answers."""
    settings = workflow.executor_settings
    asks = getattr(settings, "status_command", None)
    if asks == "sacct" and not keeps_accounts(slurm("scontrol", "show", "config")):
        settings.status_command = "squeue"


def read_states_by_their_first_word():
    """`sacct` adds who it was, `CANCELLED by 1000`: the plugin knows the word alone, takes such a job
    for one that runs, and waits for it without end."""
    if not hasattr(workflow.executor_settings, "status_command"):
        return
    import snakemake_executor_plugin_slurm as plugin

    query = plugin.query_job_status

    async def query_first_words(command, logger):
        states, seconds = await query(command, logger)
        return (
            states and {job: state.partition(" ")[0] for job, state in states.items()},
            seconds,
        )

    plugin.query_job_status = query_first_words
