localrules:
    all,
    report,


rule report:
    input:
        every_dataset("tables/{name}.csv", name=["summary_headline", "mode_aggregate"]),
        every_dataset("figures/{name}.svg", name=FIGURES),
    output:
        html=REPORT,
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
        made_by=made_by,
    message:
        "Report of the sweep"
    shell:
        "async-rollout report --sweep {params.sweep:q} --made-by {params.made_by:q} > {log:q} 2>&1"
