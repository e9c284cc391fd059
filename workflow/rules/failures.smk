"""What happens when cells failed: the others are shown all the same."""

import subprocess


def show_what_there_is():
    """Tables, figures and report of the cells that are done; a missing one is shown as missing.

    Their rules need every cell and did not run. The next run makes them again.
    """
    sweep = ["--sweep", sweep_json(None)]
    for command in ("tables", "figures", "report"):
        subprocess.run(
            ["async-rollout", command, *sweep], check=True, stdout=subprocess.DEVNULL
        )
    print(f"some cells failed; {REPORT} shows those that did not", file=sys.stderr)


onerror:
    # A job on another host starts its own Snakemake, which shall not do this.
    if workflow.is_main_process:
        show_what_there_is()
