# Answers, grades and scores of one cell. One process start serves all benchmarks of a cell.
rule sample_answers:
    input:
        model=policy,
        **benchmark_files(),
    output:
        **{
            name: f"{RESULTS}/cells/{{cell}}/samples/{name}.parquet" for name in STUDY.benchmarks
        },
        manifest=f"{RESULTS}/cells/{{cell}}/samples/manifest.json",
    params:
        settings=lambda wildcards: grid.evaluation_settings(STUDY, cell_of(wildcards)),
        benchmarks=benchmark_files(),
        folder=f"{RESULTS}/cells/{{cell}}/samples",
        work=f"{RESULTS}/checkpoints/{{cell}}/samples",
    log:
        f"{LOGS}/sample_answers/{{cell}}.log",
    resources:
        gpu=lambda wildcards: min(STUDY.scales[cell_of(wildcards).scale].gpus, 1),
        position=position,
    conda:
        "../../envs/evaluate.yaml"
    script:
        "../scripts/sample_answers.py"


rule grade_answers:
    input:
        **benchmark_files(),
        samples=rules.sample_answers.output,
    output:
        **{name: f"{RESULTS}/cells/{{cell}}/grades/{name}.parquet" for name in STUDY.benchmarks},
    params:
        k={name: benchmark.k for name, benchmark in STUDY.benchmarks.items()},
        timeout=STUDY.evaluation.grade_timeout_seconds,
        grader_version=GRADER_VERSION,
        benchmarks=benchmark_files(),
        samples=f"{RESULTS}/cells/{{cell}}/samples",
        folder=f"{RESULTS}/cells/{{cell}}/grades",
    log:
        f"{LOGS}/grade_answers/{{cell}}.log",
    resources:
        position=position,
    conda:
        "../../envs/evaluate.yaml"
    script:
        "../scripts/grade_answers.py"


rule score_cell:
    input:
        cell=rules.write_cell.output.cell,
        store=ancient(rules.make_tracking_store.output.store),
        grades=rules.grade_answers.output,
    output:
        scores=f"{RESULTS}/cells/{{cell}}/scores.json",
    params:
        folder=f"{RESULTS}/cells/{{cell}}/grades",
        benchmarks=list(STUDY.benchmarks),
        resolved=lambda wildcards: grid.resolve(STUDY, cell_of(wildcards)),
    log:
        f"{LOGS}/score_cell/{{cell}}.log",
    resources:
        position=position,
    conda:
        "../../envs/report.yaml"
    script:
        "../scripts/score_cell.py"
