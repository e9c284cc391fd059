localrules:
    tables,


rule tables:
    input:
        summaries_of,
    output:
        headline=report(
            f"{EXPERIMENT}/{{dataset}}/tables/summary_headline.csv",
            caption="../report/summary_headline.rst",
            category="Tables",
            labels={"dataset": "{dataset}", "table": "every cell"},
        ),
        aggregate=report(
            f"{EXPERIMENT}/{{dataset}}/tables/mode_aggregate.csv",
            caption="../report/mode_aggregate.rst",
            category="Tables",
            labels={"dataset": "{dataset}", "table": "over seeds"},
        ),
        laboratory=report(
            f"{EXPERIMENT}/{{dataset}}/tables/staleness_laboratory.csv",
            caption="../report/staleness_laboratory.rst",
            category="Tables",
            labels={"dataset": "{dataset}", "table": "learning by staleness"},
        ),
        markdown=expand(
            f"{EXPERIMENT}/{{{{dataset}}}}/tables/{{name}}.md",
            name=["summary_headline", "mode_aggregate", "staleness_laboratory"],
        ),
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
