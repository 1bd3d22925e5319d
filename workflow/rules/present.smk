# Tables and figures, one rule each, and their copies in MLflow.
rule main_table:
    input:
        scores=rules.collect_scores.output.scores,
    output:
        table_files("main"),
    log:
        f"{LOGS}/main_table.log",
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
    script:
        "../scripts/present.py"


use rule main_table as age_table with:
    output:
        table_files("age"),
    log:
        f"{LOGS}/age_table.log",


use rule main_table as accuracy_figure with:
    output:
        figure_files("accuracy"),
    log:
        f"{LOGS}/accuracy_figure.log",


use rule main_table as tau_max_figure with:
    output:
        figure_files("tau_max"),
    log:
        f"{LOGS}/tau_max_figure.log",


use rule main_table as training_figure with:
    output:
        figure_files("training"),
    log:
        f"{LOGS}/training_figure.log",


use rule main_table as clip_figure with:
    output:
        figure_files("clip"),
    log:
        f"{LOGS}/clip_figure.log",


rule track_results:
    input:
        store=rules.make_tracking_store.output.made,
        files=TABLES + FIGURES,
    output:
        tracked=f"{RESULTS}/tracked.txt",
    log:
        f"{LOGS}/track_results.log",
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.study,
    script:
        "../scripts/track_results.py"
