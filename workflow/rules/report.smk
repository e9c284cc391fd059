localrules:
    all,
    report,


TABULATED = every_dataset("tables/{name}", name=table_files())
DRAWN = every_dataset(
    "figures/{name}.{ending}", name=FIGURES, ending=["png", "svg", "csv"]
)


rule report:
    input:
        TABULATED,
        DRAWN,
    output:
        html=report(
            REPORT,
            caption="../report/report.rst",
            category="Report",
            labels={"report": "tables, figures and sentences"},
        ),
        lists=[
            f"{EXPERIMENT}/INDEX.md",
            f"{EXPERIMENT}/manifest.json",
            *every_dataset("INDEX.md"),
            *every_dataset("manifest.json"),
        ],
    log:
        f"{LOGS}/report.log",
    benchmark:
        f"{LOGS}/report.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        sweep=sweep_json,
        # `threads` is for Snakemake, which then does not take another call for a reason to run again
        made_by=lambda wildcards, threads: made_by(),
    message:
        "Report of the sweep"
    shell:
        "async-rollout report --sweep {params.sweep:q} --made-by {params.made_by:q} --over"
        " > {log:q} 2>&1"
