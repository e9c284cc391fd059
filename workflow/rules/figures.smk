localrules:
    figures,


rule figures:
    input:
        summaries_of,
    output:
        png=report(
            expand(f"{EXPERIMENT}/{{{{dataset}}}}/figures/{{name}}.png", name=FIGURES),
            caption="../report/figures.rst",
            category="Figures",
            subcategory="{dataset}",
        ),
        rest=expand(
            f"{EXPERIMENT}/{{{{dataset}}}}/figures/{{name}}.{{ending}}",
            name=FIGURES,
            ending=["svg", "csv"],
        ),
    log:
        f"{LOGS}/{{dataset}}/figures.log",
    benchmark:
        f"{LOGS}/{{dataset}}/figures.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        sweep=sweep_json,
    message:
        "Figures of dataset {wildcards.dataset}"
    shell:
        "async-rollout figures --sweep {params.sweep:q} --dataset {wildcards.dataset} > {log:q} 2>&1"
