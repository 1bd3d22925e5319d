# All finished cells of the study in one table, and where their verifiers disagree.
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


rule verifiers_table:
    input:
        scores=rules.collect_scores.output.scores,
    output:
        table=report(
            VERIFIERS_TABLE,
            caption="../report/verifiers_table.rst",
            category="Tables",
            labels={"table": "verifiers", "format": "csv"},
        ),
    log:
        str(FILES.log("verifiers_table")),
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
    script:
        "../scripts/verifiers_table.py"
