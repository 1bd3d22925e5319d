# Problems, benchmarks, and the models that every method starts from.
# On a cluster these stay where snakemake runs: they are short, and may need the network.
localrules:
    make_problems,
    make_benchmark,


rule make_problems:
    input:
        source=source_files(STUDY.problems),
    output:
        problems=f"{RESULTS}/data/problems.jsonl",
    log:
        f"{LOGS}/make_problems.log",
    conda:
        "../../envs/report.yaml"
    params:
        settings=STUDY.problems.model_dump(mode="json"),
    script:
        "../scripts/make_problems.py"


rule make_benchmark:
    input:
        source=lambda wildcards: source_files(benchmark_of(wildcards)),
    output:
        problems=f"{RESULTS}/data/benchmarks/{{benchmark}}.jsonl",
    log:
        f"{LOGS}/make_benchmark/{{benchmark}}.log",
    conda:
        "../../envs/evaluate.yaml"
    params:
        settings=lambda wildcards: grid.benchmark_problems(benchmark_of(wildcards)),
    script:
        "../scripts/make_benchmark.py"


rule make_base_model:
    output:
        model=directory(f"{RESULTS}/base_models/{{scale}}"),
    log:
        f"{LOGS}/make_base_model/{{scale}}.log",
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: plan.process_memory_mb(scale_of(wildcards), attempt),
        runtime=lambda wildcards, attempt: plan.minutes_allowed(
            scale_of(wildcards).hours_base, attempt
        ),
        # What is only compared: its correction makes no model again.
        parameters=lambda wildcards: grid.model_parameters(scale_of(wildcards)),
    params:
        model=lambda wildcards: grid.base_model(scale_of(wildcards)),
        problems=STUDY.problems.model_dump(mode="json"),
    script:
        "../scripts/make_base_model.py"


rule warm_start:
    input:
        model=f"{RESULTS}/base_models/{{scale}}",
        source=source_files(STUDY.warm_start) if STUDY.warm_start else [],
    output:
        model=directory(f"{RESULTS}/warm_start/{{scale}}"),
    log:
        f"{LOGS}/warm_start/{{scale}}.log",
    conda:
        "../../envs/train.yaml"
    # Everything of the scale waits for it, so it may have a second core.
    threads: 2
    resources:
        gpu=lambda wildcards: min(scale_of(wildcards).gpus, 1),
        mem_mb=lambda wildcards, attempt: plan.memory_mb(scale_of(wildcards), attempt),
        runtime=lambda wildcards, attempt: plan.minutes_allowed(
            scale_of(wildcards).hours_base, attempt
        ),
    params:
        settings=STUDY.warm_start.model_dump(mode="json") if STUDY.warm_start else {},
    script:
        "../scripts/warm_start.py"


rule select_prompts:
    input:
        model=lambda wildcards: f"{RESULTS}/{grid.start_model(STUDY, wildcards.scale)}",
        problems=rules.make_problems.output.problems,
    output:
        problems=f"{RESULTS}/data/{{scale}}/selected.jsonl",
    log:
        f"{LOGS}/select_prompts/{{scale}}.log",
    conda:
        "../../envs/train.yaml"
    resources:
        gpu=lambda wildcards: min(scale_of(wildcards).gpus, 1),
        mem_mb=lambda wildcards, attempt: plan.memory_mb(scale_of(wildcards), attempt),
        runtime=lambda wildcards, attempt: plan.minutes_allowed(
            scale_of(wildcards).hours_base, attempt
        ),
    params:
        settings=(STUDY.prompt_selection.model_dump(mode="json") if STUDY.prompt_selection else {}),
    script:
        "../scripts/select_prompts.py"
