"""A look at the machine before any cell with a GPU starts on it."""


localrules:
    preflight,


# Each cell has its own, which goes when the cell is done: so a machine is looked at whenever
# something is to run on it, and what is done does not depend on it. All look before any cell runs,
# since a cell that is running has a GPU in use. What a cell's own node is like it finds out itself.
rule preflight:
    output:
        temp(f"{LOGS}/{{dataset}}/{{cell}}.fit"),
    log:
        f"{LOGS}/{{dataset}}/{{cell}}.preflight.log",
    benchmark:
        f"{LOGS}/{{dataset}}/{{cell}}.preflight.tsv"
    priority: 100
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        resolved=lambda wildcards: canonical_json(run_of(wildcards)),
        where=lambda wildcards: "--elsewhere" if workflow.non_local_exec else "",
    message:
        "Preflight of cell {wildcards.dataset} {wildcards.cell}"
    shell:
        "async-rollout preflight --resolved {params.resolved:q} {params.where} > {log:q} 2>&1"
        " && cp {log:q} {output:q}"
