# The training of one cell.
# The settings come as params: only a change of what a cell learns from retrains it. No input may be
# `ancient`: Snakemake does not look at the params of a job behind an ancient input that is made anew.
# What changes no result (place in the grid, checkpoints, what is only compared) comes as resources, which trigger nothing.
rule train_policy:
    input:
        model=lambda wildcards: str(RUN.start_model(cell_of(wildcards).scale)),
        problems=lambda wildcards: str(RUN.training_problems(cell_of(wildcards).scale)),
    output:
        model=directory(str(CELL.model)),
        metrics=str(CELL.metrics),
        settings=str(CELL.training_settings),
        replay=str(CELL.trained_rows),
        rollouts=str(CELL.rollouts),
    log:
        str(FILES.log("train_policy", "{cell}")),
    conda:
        "../../envs/train.yaml"
    resources:
        **limits("hours_train", job_limits.memory_mb),
        gpu=lambda wildcards: scale_of(wildcards).gpus,
        position=lambda wildcards: RUN.position(wildcards.cell),
        checkpoint_every=STUDY.checkpoints.every,
        keep_checkpoints=int(STUDY.checkpoints.keep),
        expected_prompts=STUDY.training.expected_prompts or 0,
    params:
        settings=lambda wildcards: cells.training_settings(STUDY, cell_of(wildcards)),
        checkpoints=str(CELL.training_checkpoints),
    script:
        "../scripts/train_policy.py"
