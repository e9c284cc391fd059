rule run:
    input:
        unpack(cell_inputs),
        fit=fit_for,
    output:
        summary=f"{EXPERIMENT}/{{dataset}}/runs/{{cell}}/summary.json",
    log:
        f"{LOGS}/{{dataset}}/{{cell}}.log",
    benchmark:
        f"{LOGS}/{{dataset}}/{{cell}}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: cores_of
    resources:
        **requests(),
        mem_mb=memory_of,
        gpu=gpus_of,
    params:
        # the one thing that decides whether a cell is run again
        resolved=lambda wildcards: canonical_json(run_of(wildcards)),
        out=lambda wildcards, output: Path(output.summary).parent,
        data=lambda wildcards, input: Path(input.data).parent,
    message:
        "Cell {wildcards.dataset} {wildcards.cell}"
    shell:
        # tee: the running cell's progress is seen on the terminal and kept; -i: Ctrl-C is for the cell
        "async-rollout run --resolved {params.resolved:q} --data {params.data:q} --out {params.out:q}"
        " 2>&1 | tee -i {log:q} >&2"
