"""The tables of each dataset: those of the catalog."""

from async_rollout.analysis.tables.catalog import TABLES, table_files


localrules:
    tables,


rule tables:
    input:
        summaries_of,
    output:
        **{
            name: report(
                f"{EXPERIMENT}/{{dataset}}/tables/{name}.csv",
                caption=f"../report/{name}.rst",
                category="Tables",
                labels={"dataset": "{dataset}", "table": table.title},
            )
            for name, table in TABLES.items()
        },
        rest=[
            f"{EXPERIMENT}/{{dataset}}/tables/{name}"
            for name in table_files()
            if not name.endswith(".csv")
        ],
    log:
        f"{LOGS}/{{dataset}}/tables.log",
    benchmark:
        f"{LOGS}/{{dataset}}/tables.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        sweep=sweep_json,
    message:
        "Tables of dataset {wildcards.dataset}"
    shell:
        "async-rollout tables --sweep {params.sweep:q} --dataset {wildcards.dataset} > {log:q} 2>&1"
