# Answers, grades and scores of one cell. One process start serves all benchmarks of a cell.
rule sample_answers:
    input:
        model=policy,
        benchmarks=benchmark_files(),
    output:
        samples=[f"{RESULTS}/cells/{{cell}}/samples/{name}.parquet" for name in STUDY.benchmarks],
        manifest=f"{RESULTS}/cells/{{cell}}/samples/manifest.json",
    log:
        f"{LOGS}/sample_answers/{{cell}}.log",
    conda:
        "../../envs/evaluate.yaml"
    resources:
        gpu=lambda wildcards: min(scale_of(wildcards).gpus, 1),
        mem_mb=lambda wildcards, attempt: plan.process_memory_mb(scale_of(wildcards), attempt),
        runtime=lambda wildcards, attempt: plan.minutes_allowed(
            scale_of(wildcards).hours_evaluate, attempt
        ),
        position=position,
    params:
        settings=lambda wildcards: grid.evaluation_settings(STUDY, cell_of(wildcards)),
        benchmarks=list(STUDY.benchmarks),
        work=f"{RESULTS}/checkpoints/samples/{{cell}}",
    script:
        "../scripts/sample_answers.py"


rule grade_answers:
    input:
        benchmarks=benchmark_files(),
        samples=rules.sample_answers.output.samples,
        manifest=rules.sample_answers.output.manifest,
    output:
        grades=[f"{RESULTS}/cells/{{cell}}/grades/{name}.parquet" for name in STUDY.benchmarks],
    log:
        f"{LOGS}/grade_answers/{{cell}}.log",
    conda:
        "../../envs/evaluate.yaml"
    resources:
        position=position,
    params:
        # No input: stored samples are graded also where the model is no more.
        model=policy,
        k={name: benchmark.k for name, benchmark in STUDY.benchmarks.items()},
        timeout=STUDY.evaluation.grade_timeout_seconds,
        grader_version=grid.GRADER_VERSION,
    script:
        "../scripts/grade_answers.py"


# The settings are written with the scores that they decided.
rule score_cell:
    input:
        grades=rules.grade_answers.output.grades,
    output:
        cell=f"{RESULTS}/cells/{{cell}}/cell.json",
        scores=f"{RESULTS}/cells/{{cell}}/scores.json",
    log:
        f"{LOGS}/score_cell/{{cell}}.log",
    conda:
        "../../envs/report.yaml"
    resources:
        position=position,
    params:
        resolved=lambda wildcards: grid.resolve(STUDY, cell_of(wildcards)),
        benchmarks=list(STUDY.benchmarks),
    script:
        "../scripts/score_cell.py"
