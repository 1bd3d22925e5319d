# Tables and figures, most of them in one job each, and everything in MLflow.
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
        config=config_text(config),
    script:
        "../scripts/present.py"


use rule main_table as age_table with:
    output:
        table_files("age"),
    log:
        f"{LOGS}/age_table.log",


# One job: loading the libraries costs more than making a table. The report shows the HTML files.
use rule main_table as paper_tables with:
    output:
        [
            report(
                f"{RESULTS}/tables/{name}.html",
                caption=f"../report/{name}.rst",
                category="The paper's tables",
                labels={"table": name.removeprefix("table"), "numbers": "this study"},
            )
            for name in NUMBERED
        ],
        [
            report(
                f"{RESULTS}/tables/{name}.html",
                caption="../report/comparison.rst",
                category="The paper's tables",
                labels={"table": name[5:7], "numbers": "this study, paper, difference"},
            )
            for name in COMPARED
        ],
        report(
            f"{RESULTS}/tables/published_check.html",
            caption="../report/published_check.rst",
            category="The paper's tables",
            labels={"table": "all", "numbers": "paper, recomputed"},
        ),
        expand(
            f"{RESULTS}/tables/{{name}}.{{ext}}",
            name=[*NUMBERED, *COMPARED, "published_check"],
            ext=["csv", "md", "tex"],
        ),
    log:
        f"{LOGS}/paper_tables.log",


rule further_figures:
    input:
        scores=rules.collect_scores.output.scores,
    output:
        [figure_files(name) for name in FURTHER_FIGURES],
    log:
        f"{LOGS}/further_figures.log",
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
    script:
        "../scripts/draw_figures.py"


use rule further_figures as accuracy_figure with:
    output:
        figure_files("accuracy"),
    log:
        f"{LOGS}/accuracy_figure.log",


use rule further_figures as tau_max_figure with:
    output:
        figure_files("tau_max"),
    log:
        f"{LOGS}/tau_max_figure.log",


use rule further_figures as training_figure with:
    output:
        figure_files("training"),
    log:
        f"{LOGS}/training_figure.log",


use rule further_figures as clip_figure with:
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
        study=STUDY.model_dump(mode="json"),
        copy_models=config["copy_models"],
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
        copy_models=config["copy_models"],
    script:
        "../scripts/sync_tracking.py"
