# One cell: its resolved settings, and its training.
rule make_tracking_store:
    output:
        store=f"{RESULTS}/tracking.json",
    params:
        uri=TRACKING_URI,
        study=STUDY.study,
        artifacts=f"{config['results']}/mlflow-artifacts/{STUDY.study}",
    log:
        f"{LOGS}/make_tracking_store.log",
    conda:
        "../../envs/report.yaml"
    script:
        "../scripts/make_tracking_store.py"


rule write_cell:
    output:
        cell=f"{RESULTS}/cells/{{cell}}/cell.json",
    params:
        resolved=lambda wildcards: grid.resolve(STUDY, cell_of(wildcards)),
    log:
        f"{LOGS}/write_cell/{{cell}}.log",
    conda:
        "../../envs/report.yaml"
    script:
        "../scripts/write_cell.py"


# The settings come as params: only a change of what a cell learns from retrains it.
rule train_policy:
    input:
        cell=ancient(rules.write_cell.output.cell),
        store=ancient(rules.make_tracking_store.output.store),
        model=start_model,
        problems=training_problems,
    output:
        model=directory(f"{RESULTS}/cells/{{cell}}/model"),
        metrics=f"{RESULTS}/cells/{{cell}}/train/metrics.jsonl",
        replay=f"{RESULTS}/cells/{{cell}}/train/replay.parquet",
        rollouts=f"{RESULTS}/cells/{{cell}}/train/rollouts.parquet",
    params:
        settings=lambda wildcards: grid.training_settings(STUDY, cell_of(wildcards)),
        folder=f"{RESULTS}/cells/{{cell}}",
        checkpoints=f"{RESULTS}/checkpoints/{{cell}}",
    log:
        f"{LOGS}/train_policy/{{cell}}.log",
    resources:
        gpu=lambda wildcards: STUDY.scales[cell_of(wildcards).scale].gpus,
        position=position,
    conda:
        "../../envs/train.yaml"
    script:
        "../scripts/train_policy.py"
