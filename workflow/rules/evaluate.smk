# Answers, grades and scores of one cell. One process start serves all benchmarks of a cell.
rule sample_answers:
    input:
        model=lambda wildcards: str(RUN.policy(wildcards.cell)),
        benchmarks=[str(FILES.benchmark(name)) for name in STUDY.benchmarks],
    output:
        samples=[str(CELL.samples(name)) for name in STUDY.benchmarks],
        manifest=str(CELL.manifest),
    log:
        str(FILES.log("sample_answers", "{cell}")),
    conda:
        "../../envs/evaluate.yaml"
    resources:
        **limits("hours_evaluate", job_limits.process_memory_mb),
        gpu=lambda wildcards: min(scale_of(wildcards).gpus, 1),
        position=lambda wildcards: RUN.position(wildcards.cell),
    params:
        settings=lambda wildcards: cells.evaluation_settings(STUDY, cell_of(wildcards)),
        benchmarks=list(STUDY.benchmarks),
        work=str(CELL.sampling_checkpoints),
    script:
        "../scripts/sample_answers.py"


rule grade_answers:
    input:
        benchmarks=[str(FILES.benchmark(name)) for name in STUDY.benchmarks],
        samples=rules.sample_answers.output.samples,
        manifest=rules.sample_answers.output.manifest,
    output:
        grades=[str(CELL.grades(name)) for name in STUDY.benchmarks],
    log:
        str(FILES.log("grade_answers", "{cell}")),
    conda:
        "../../envs/evaluate.yaml"
    resources:
        position=lambda wildcards: RUN.position(wildcards.cell),
    params:
        **cells.benchmark_tasks(STUDY),
        # No input: stored samples are graded also where the model is no more.
        model=lambda wildcards: str(RUN.policy(wildcards.cell)),
        k={name: benchmark.k for name, benchmark in STUDY.benchmarks.items()},
        timeout=STUDY.evaluation.grade_timeout_seconds,
        grader_version=cells.GRADER_VERSION,
    script:
        "../scripts/grade_answers.py"


# The settings are written with the scores that they decided.
rule score_cell:
    input:
        grades=rules.grade_answers.output.grades,
    output:
        cell=str(CELL.settings),
        scores=str(CELL.scores),
    log:
        str(FILES.log("score_cell", "{cell}")),
    conda:
        "../../envs/report.yaml"
    resources:
        position=lambda wildcards: RUN.position(wildcards.cell),
    params:
        resolved=lambda wildcards: cells.resolve(STUDY, cell_of(wildcards)),
        benchmarks=list(STUDY.benchmarks),
    script:
        "../scripts/score_cell.py"
