"""What happens when cells failed: the others are shown all the same."""

import subprocess

# While it is there, tables, figures and report are of a run that failed. Snakemake takes them for
# what their rules make of all cells, and would keep them when the sweep asks for fewer again.
PARTIAL = Path(EXPERIMENT, ".partial")


def redo_if_partial():
    """Have Snakemake make tables and figures again, and so the report, if the last run failed."""
    if workflow.is_main_process and PARTIAL.exists():
        workflow.dag.forcefiles.update(TABULATED + DRAWN)


def show_what_there_is():
    """Tables, figures and report of the cells that are done; a missing one is shown as missing.

    Their rules need every cell and did not run. The next run makes them again.
    """
    PARTIAL.parent.mkdir(parents=True, exist_ok=True)
    PARTIAL.touch()
    sweep = ["--sweep", sweep_json(None), "--over"]
    for command in (["tables"], ["figures"], ["report", "--made-by", made_by()]):
        subprocess.run(
            ["async-rollout", *command, *sweep], check=True, stdout=subprocess.DEVNULL
        )
    print(f"some cells failed; {REPORT} shows those that did not", file=sys.stderr)


onerror:
    # A job on another host starts its own Snakemake, which shall not do this.
    if workflow.is_main_process:
        show_what_there_is()


onsuccess:
    if any(job.rule.name == "report" for job in workflow.dag.finished_jobs):
        PARTIAL.unlink(missing_ok=True)
