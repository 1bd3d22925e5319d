# Experience replay for GRPO: study file -> cells -> base models -> training -> answers -> grades -> tables and figures.
from snakemake.utils import min_version

min_version("9.27")


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/aggregate.smk"
include: "workflow/rules/present.smk"


wildcard_constraints:
    cell="[^/]+/[^/]+",
    scale="[^/]+",
    benchmark="[^/]+",


rule all:
    default_target: True
    input:
        rules.track_results.output,
        cell_files(),


rule cells:
    input:
        cell_files(),


# After a change of the grader: everything is graded again from the stored answers, without a GPU.
rule grades:
    input:
        expand(rules.grade_answers.output.grades, cell=CHOSEN),


rule tables:
    input:
        TABLES,


rule figures:
    input:
        FIGURES,


# What the study costs, and what of it is done; always runs, and makes nothing.
rule plan:
    log:
        f"{LOGS}/plan.log",
    localrule: True
    run:
        Path(log[0]).write_text(study_plan())
        print(Path(log[0]).read_text())


onstart:
    if not plan_alone():
        check_hardware()
        print(opening(workflow.cores))


onsuccess:
    if not plan_alone():
        print(closing())


onerror:
    print(plan.stopped(Path(RESULTS)))
