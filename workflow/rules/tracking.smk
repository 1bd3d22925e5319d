# MLflow: the store before everything, the study's results after it.
# On a cluster this stays where snakemake runs: a queue would take longer.
localrules:
    make_tracking_store,


rule make_tracking_store:
    output:
        made=str(FILES.tracking_made),
    log:
        str(FILES.log("make_tracking_store")),
    # Before the grid; no cell depends on it, since a store that is made anew must retrain nothing.
    priority: 100
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.study,
    script:
        "../scripts/make_tracking_store.py"


rule track_results:
    input:
        store=rules.make_tracking_store.output.made,
        files=[rules.tables.output, rules.figures.output],
    output:
        tracked=str(FILES.tracked),
    log:
        str(FILES.log("track_results")),
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
        copy_models=config["copy_models"],
        missed=RUN.tracking_misses(),
    script:
        "../scripts/track_results.py"


# A target to be named; without output, it always runs.
rule sync_tracking:
    log:
        str(FILES.log("sync_tracking")),
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
        results=str(FILES.folder),
        copy_models=config["copy_models"],
    script:
        "../scripts/sync_tracking.py"
