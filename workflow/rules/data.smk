# Problems, benchmarks, and the models that every method starts from.
# On a cluster these stay where snakemake runs: they are short, and may need the network.
localrules:
    make_problems,
    make_benchmark,


rule make_problems:
    input:
        source=source_files(STUDY.problems),
    output:
        problems=str(FILES.problems),
    log:
        str(FILES.log("make_problems")),
    conda:
        "../../envs/report.yaml"
    params:
        **cells.problems_params(STUDY),
    script:
        "../scripts/make_problems.py"


rule make_benchmark:
    input:
        source=lambda wildcards: source_files(benchmark_of(wildcards)),
    output:
        problems=str(FILES.benchmark("{benchmark}")),
    log:
        str(FILES.log("make_benchmark", "{benchmark}")),
    conda:
        "../../envs/evaluate.yaml"
    params:
        settings=lambda wildcards: cells.benchmark_problems(STUDY, benchmark_of(wildcards)),
        version=versions.PROBLEMS_VERSION,
    script:
        "../scripts/make_benchmark.py"


rule make_base_model:
    output:
        model=directory(str(FILES.base_model("{scale}"))),
    log:
        str(FILES.log("make_base_model", "{scale}")),
    conda:
        "../../envs/train.yaml"
    resources:
        **limits("hours_base", job_limits.process_memory_mb),
        # What is only compared: its correction makes no model again.
        parameters=lambda wildcards: cells.model_parameters(scale_of(wildcards)),
    params:
        **cells.asked(STUDY.task),
        prompt=lambda wildcards: cells.prompt(STUDY),
        version=versions.MODEL_VERSION,
        model=lambda wildcards: cells.base_model(scale_of(wildcards)),
        problems=cells.deciding(STUDY.problems),
    script:
        "../scripts/make_base_model.py"


rule warm_start:
    input:
        model=str(FILES.base_model("{scale}")),
        source=source_files(STUDY.warm_start) if STUDY.warm_start else [],
    output:
        model=directory(str(FILES.warm_started_model("{scale}"))),
    log:
        str(FILES.log("warm_start", "{scale}")),
    conda:
        "../../envs/train.yaml"
    # Everything of the scale waits for it, so it may have a second core.
    threads: 2
    resources:
        **limits("hours_base", job_limits.memory_mb),
        gpu=lambda wildcards: min(scale_of(wildcards).gpus, 1),
    params:
        **cells.warm_start_params(STUDY),
    script:
        "../scripts/warm_start.py"


rule select_prompts:
    input:
        model=lambda wildcards: str(RUN.start_model(wildcards.scale)),
        problems=rules.make_problems.output.problems,
    output:
        problems=str(FILES.selected_problems("{scale}")),
    log:
        str(FILES.log("select_prompts", "{scale}")),
    conda:
        "../../envs/evaluate.yaml"
    resources:
        **limits("hours_base", job_limits.process_memory_mb),
        gpu=lambda wildcards: min(scale_of(wildcards).gpus, 1),
    params:
        settings=lambda wildcards: cells.selection_params(STUDY, wildcards.scale),
    script:
        "../scripts/select_prompts.py"
