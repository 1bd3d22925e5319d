# All finished cells of the study in one table.
rule collect_scores:
    input:
        cells=cell_files(),
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
