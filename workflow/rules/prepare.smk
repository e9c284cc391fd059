from async_rollout.commands.environment import set_hub_home

set_hub_home(SWEEP.hub)


localrules:
    prepare,
    warm_start,
    fetch,


rule prepare:
    input:
        source_of,
    output:
        train=f"{EXPERIMENT}/{{dataset}}/{{data}}/train.jsonl",
        held_out=f"{EXPERIMENT}/{{dataset}}/{{data}}/eval.jsonl",
        manifest=f"{EXPERIMENT}/{{dataset}}/{{data}}/manifest.json",
    log:
        f"{LOGS}/prepare/{{dataset}}-{{data}}.log",
    benchmark:
        f"{LOGS}/prepare/{{dataset}}-{{data}}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        dataset=lambda wildcards: DATA[wildcards.dataset, wildcards.data].dataset,
        block=lambda wildcards: block_json(DATA[wildcards.dataset, wildcards.data].data),
        out=lambda wildcards, output: Path(output.manifest).parent,
    message:
        "Tasks of dataset {wildcards.dataset}"
    shell:
        "async-rollout prepare {params.dataset:q} --block {params.block:q} --out {params.out:q}"
        " > {log:q} 2>&1"


rule warm_start:
    output:
        config=f"{RESULTS}/models/{{model}}/config.json",
        weights=f"{RESULTS}/models/{{model}}/model.safetensors",
        record=f"{RESULTS}/models/{{model}}/warm_start.json",
    log:
        "logs/models/{model}.log",
    benchmark:
        "logs/models/{model}.tsv"
    wildcard_constraints:
        model="embedded-[0-9a-f]{8}",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        block=lambda wildcards: block_json(MODELS[wildcards.model].embedded),
        out=lambda wildcards, output: Path(output.config).parent,
    message:
        "The embedded model, built and warm-started once"
    shell:
        "async-rollout warm-start --block {params.block:q} --out {params.out:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule fetch:
    output:
        config=f"{RESULTS}/models/{{model}}/config.json",
    log:
        "logs/models/{model}.log",
    benchmark:
        "logs/models/{model}.tsv"
    wildcard_constraints:
        model="(?!embedded-)[^/]+",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        model=lambda wildcards: MODELS[wildcards.model].model.id,
        out=lambda wildcards, output: Path(output.config).parent,
    message:
        "Model {params.model}, fetched once: cells run without a hub"
    shell:
        "async-rollout fetch {params.model:q} --out {params.out:q}"
        " 2>&1 | tee -i {log:q} >&2"
