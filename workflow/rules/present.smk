# Tables and figures, one rule each, and everything in MLflow.
rule main_table:
    input:
        scores=rules.collect_scores.output.scores,
    output:
        report(
            multiext(f"{RESULTS}/tables/main", ".csv", ".md", ".tex"),
            caption="../report/main_table.rst",
            category="Tables",
        ),
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
        report(
            multiext(f"{RESULTS}/tables/age", ".csv", ".md", ".tex"),
            caption="../report/age_table.rst",
            category="Tables",
        ),
    log:
        f"{LOGS}/age_table.log",


use rule main_table as accuracy_figure with:
    output:
        report(
            multiext(f"{RESULTS}/figures/accuracy", ".png", ".svg"),
            caption="../report/accuracy_figure.rst",
            category="Figures",
        ),
    log:
        f"{LOGS}/accuracy_figure.log",


use rule main_table as tau_max_figure with:
    output:
        report(
            multiext(f"{RESULTS}/figures/tau_max", ".png", ".svg"),
            caption="../report/tau_max_figure.rst",
            category="Figures",
        ),
    log:
        f"{LOGS}/tau_max_figure.log",


use rule main_table as training_figure with:
    output:
        report(
            multiext(f"{RESULTS}/figures/training", ".png", ".svg"),
            caption="../report/training_figure.rst",
            category="Figures",
        ),
    log:
        f"{LOGS}/training_figure.log",


use rule main_table as clip_figure with:
    output:
        report(
            multiext(f"{RESULTS}/figures/clip", ".png", ".svg"),
            caption="../report/clip_figure.rst",
            category="Figures",
        ),
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
        study=STUDY.model_dump(mode="json"),
        copy_models=bool(config["copy_models"]),
        missed=missed(),
    script:
        "../scripts/track_results.py"


# A target to be named; without output, it always runs.
rule sync_tracking:
    log:
        f"{LOGS}/sync_tracking.log",
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
        results=RESULTS,
        copy_models=bool(config["copy_models"]),
    script:
        "../scripts/sync_tracking.py"
