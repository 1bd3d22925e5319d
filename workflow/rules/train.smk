# The training of one cell.
# On a cluster this stays where snakemake runs: a queue would take longer.
localrules:
    make_tracking_store,


rule make_tracking_store:
    output:
        made=f"{RESULTS}/tracking.txt",
    log:
        f"{LOGS}/make_tracking_store.log",
    # Before the grid; no cell depends on it, since a store that is made anew must retrain nothing.
    priority: 100
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.study,
    script:
        "../scripts/make_tracking_store.py"


# The settings come as params: only a change of what a cell learns from retrains it. No input may be
# `ancient`: Snakemake does not look at the params of a job behind an ancient input that is made anew.
# What changes no result (place in the grid, checkpoints, what is only compared) comes as resources, which trigger nothing.
rule train_policy:
    input:
        model=start_model,
        problems=training_problems,
    output:
        model=directory(f"{RESULTS}/cells/{{cell}}/model"),
        metrics=f"{RESULTS}/cells/{{cell}}/train/metrics.jsonl",
        settings=f"{RESULTS}/cells/{{cell}}/train/settings.json",
        replay=f"{RESULTS}/cells/{{cell}}/train/replay.parquet",
        rollouts=f"{RESULTS}/cells/{{cell}}/train/rollouts.parquet",
    log:
        f"{LOGS}/train_policy/{{cell}}.log",
    conda:
        "../../envs/train.yaml"
    resources:
        gpu=lambda wildcards: scale_of(wildcards).gpus,
        mem_mb=lambda wildcards, attempt: plan.memory_mb(scale_of(wildcards), attempt),
        runtime=lambda wildcards, attempt: plan.minutes_allowed(
            scale_of(wildcards).hours_train, attempt
        ),
        position=position,
        checkpoint_every=STUDY.checkpoints.every,
        keep_checkpoints=int(STUDY.checkpoints.keep),
        expected_prompts=STUDY.training.expected_prompts or 0,
    params:
        settings=lambda wildcards: grid.training_settings(STUDY, cell_of(wildcards)),
        checkpoints=f"{RESULTS}/checkpoints/training/{{cell}}",
    script:
        "../scripts/train_policy.py"
