# Tables and figures, most of them in one job each, and everything in MLflow.
rule main_table:
    input:
        scores=rules.collect_scores.output.scores,
    output:
        table_files("main"),
    log:
        str(FILES.log("main_table")),
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
        config=RUN.config,
    script:
        "../scripts/present.py"


use rule main_table as age_table with:
    output:
        table_files("age"),
    log:
        str(FILES.log("age_table")),


# One job: loading the libraries costs more than making a table. The report shows the HTML files.
use rule main_table as paper_tables with:
    output:
        [
            report(
                f"{FILES.tables}/{name}.html",
                caption=f"../report/{name}.rst",
                category="The paper's tables",
                labels={"table": name.removeprefix("table"), "numbers": "this study"},
            )
            for name in names.NUMBERED
        ],
        [
            report(
                f"{FILES.tables}/{name}.html",
                caption="../report/comparison.rst",
                category="The paper's tables",
                labels={"table": name[5:7], "numbers": "this study, paper, difference"},
            )
            for name in names.COMPARED
        ],
        report(
            f"{FILES.tables}/{names.PUBLISHED_CHECK}.html",
            caption="../report/published_check.rst",
            category="The paper's tables",
            labels={"table": "all", "numbers": "paper, recomputed"},
        ),
        expand(
            f"{FILES.tables}/{{name}}.{{ext}}",
            name=[*names.NUMBERED, *names.COMPARED, names.PUBLISHED_CHECK],
            ext=["csv", "md", "tex"],
        ),
    log:
        str(FILES.log("paper_tables")),


rule further_figures:
    input:
        scores=rules.collect_scores.output.scores,
    output:
        [figure_files(name) for name in names.FURTHER_FIGURES],
    log:
        str(FILES.log("further_figures")),
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
        str(FILES.log("accuracy_figure")),


use rule further_figures as tau_max_figure with:
    output:
        figure_files("tau_max"),
    log:
        str(FILES.log("tau_max_figure")),


use rule further_figures as training_figure with:
    output:
        figure_files("training"),
    log:
        str(FILES.log("training_figure")),


use rule further_figures as clip_figure with:
    output:
        figure_files("clip"),
    log:
        str(FILES.log("clip_figure")),


rule track_results:
    input:
        store=rules.make_tracking_store.output.made,
        files=TABLES + FIGURES,
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
