localrules:
    figure,


# One job a figure: a new caption redraws no other.
rule figure:
    input:
        summaries_of,
    output:
        png=report(
            f"{EXPERIMENT}/{{dataset}}/figures/{{figure}}.png",
            caption="../report/figure.rst",
            category="Figures",
            subcategory="{dataset}",
            labels=lambda wildcards: {
                "dataset": wildcards.dataset,
                "figure": FIGURES[wildcards.figure].title,
            },
        ),
        svg=f"{EXPERIMENT}/{{dataset}}/figures/{{figure}}.svg",
        csv=f"{EXPERIMENT}/{{dataset}}/figures/{{figure}}.csv",
    log:
        f"{LOGS}/{{dataset}}/figures/{{figure}}.log",
    benchmark:
        f"{LOGS}/{{dataset}}/figures/{{figure}}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        sweep=sweep_json,
        style=style_digest(),
        caption=lambda wildcards: FIGURES[wildcards.figure].caption,
    message:
        "Figure {wildcards.figure} of dataset {wildcards.dataset}"
    shell:
        "async-rollout figures --sweep {params.sweep:q} --dataset {wildcards.dataset} "
        "--figure {wildcards.figure} > {log:q} 2>&1"
