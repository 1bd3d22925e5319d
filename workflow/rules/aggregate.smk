# All finished cells of the study in one table, and where their verifiers disagree.
rule collect_scores:
    input:
        cells=score_files(),
    output:
        scores=f"{RESULTS}/scores.parquet",
    log:
        f"{LOGS}/collect_scores.log",
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
            f"{RESULTS}/tables/verifiers.csv",
            caption="../report/verifiers_table.rst",
            category="Tables",
            labels={"table": "verifiers", "format": "csv"},
        ),
    log:
        f"{LOGS}/verifiers_table.log",
    conda:
        "../../envs/report.yaml"
    params:
        study=STUDY.model_dump(mode="json"),
    script:
        "../scripts/verifiers_table.py"
