# One cell: its resolved settings, and its training.
rule make_tracking_store:
    output:
        store=f"{RESULTS}/tracking.json",
    log:
        f"{LOGS}/make_tracking_store.log",
    conda:
        "../../envs/report.yaml"
    params:
        uri=TRACKING_URI,
        study=STUDY.study,
        artifacts=f"{config['results']}/mlflow-artifacts/{STUDY.study}",
    script:
        "../scripts/make_tracking_store.py"


rule write_cell:
    output:
        cell=f"{RESULTS}/cells/{{cell}}/cell.json",
    log:
        f"{LOGS}/write_cell/{{cell}}.log",
    conda:
        "../../envs/report.yaml"
    params:
        resolved=lambda wildcards: grid.resolve(STUDY, cell_of(wildcards)),
    script:
        "../scripts/write_cell.py"


# The settings come as params: only a change of what a cell learns from retrains it. It must not read
# cell.json: Snakemake does not look at the params of a job behind an `ancient` input that is made anew.
rule train_policy:
    input:
        store=ancient(f"{RESULTS}/tracking.json"),
        model=start_model,
        problems=training_problems,
    output:
        model=directory(f"{RESULTS}/cells/{{cell}}/model"),
        metrics=f"{RESULTS}/cells/{{cell}}/train/metrics.jsonl",
        replay=f"{RESULTS}/cells/{{cell}}/train/replay.parquet",
        rollouts=f"{RESULTS}/cells/{{cell}}/train/rollouts.parquet",
    log:
        f"{LOGS}/train_policy/{{cell}}.log",
    conda:
        "../../envs/train.yaml"
    resources:
        gpu=lambda wildcards: STUDY.scales[cell_of(wildcards).scale].gpus,
        position=position,
    params:
        settings=lambda wildcards: grid.training_settings(STUDY, cell_of(wildcards)),
        checkpoints=f"{RESULTS}/checkpoints/training/{{cell}}",
    script:
        "../scripts/train_policy.py"
