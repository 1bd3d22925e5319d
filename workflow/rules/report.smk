# All finished cells of the study in one table, and from that every table and figure.
rule collect_scores:
    input:
        cells=RUN.scores(),
    output:
        scores=str(FILES.scores),
    log:
        str(FILES.log("collect_scores")),
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
    script:
        "../scripts/collect_scores.py"


# One job each: loading the libraries costs more than making a table.
rule tables:
    input:
        scores=rules.collect_scores.output.scores,
    output:
        [shown(FILES.tables, name, names.TABLE_FORMATS) for name in names.TABLES],
    log:
        str(FILES.log("tables")),
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
        config=RUN.config,
    script:
        "../scripts/make_tables.py"


rule figures:
    input:
        scores=rules.collect_scores.output.scores,
    output:
        [shown(FILES.figures, name, names.FIGURE_FORMATS) for name in names.FIGURES],
    log:
        str(FILES.log("figures")),
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
    script:
        "../scripts/draw_figures.py"
