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
        cell_files,


rule cells:
    input:
        cell_files,


# After a change of the grader: everything is graded again from the stored answers, without a GPU.
rule grades:
    input:
        lambda wildcards: expand(rules.grade_answers.output.grades, cell=CHOSEN),


rule tables:
    input:
        TABLES,


rule figures:
    input:
        FIGURES,


# What the study costs, and what of it is done: told at the start, where Snakemake's limits are known.
rule plan:
    log:
        f"{LOGS}/plan.log",
    localrule: True
    run:
        Path(log[0]).touch()


onstart:
    for line in LEFT_OUT:
        print(f"Warning: {line}")
    for line in oddities(STUDY):
        print(f"Warning: {STUDY_FILE}: {line}")
    if "plan" in planned_rules():
        print(study_plan())
    if planned_rules() != {"plan"}:
        check_retraining()
        check_hardware()
        # A cluster is told a number of jobs, this machine one of cores.
        limits = workflow.resource_settings
        print(opening(limits.nodes or limits.cores))


onsuccess:
    if planned_rules() != {"plan"}:
        print(closing())


onerror:
    print(announcements.stopped(Path(RESULTS)))
