# Experience replay for GRPO: study file -> cells -> base models -> training -> answers -> grades -> tables and figures.
from snakemake.utils import min_version

min_version("9.27")


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/tracking.smk"


wildcard_constraints:
    cell="[^/]+/[^/]+",
    scale="[^/]+",
    benchmark="[^/]+",


rule all:
    default_target: True
    input:
        rules.track_results.output,
        lambda wildcards: RUN.scores() + RUN.lost(),


rule cells:
    input:
        lambda wildcards: RUN.scores() + RUN.lost(),


# After a change of the grader: everything is graded again from the stored answers, without a GPU.
rule grades:
    input:
        lambda wildcards: expand(rules.grade_answers.output.grades, cell=RUN.chosen),


# What the study costs, and what of it is done: told at the start, where Snakemake's limits are known.
rule plan:
    log:
        str(FILES.log("plan")),
    localrule: True
    run:
        Path(log[0]).touch()


onstart:
    for line in LEFT_OUT:
        print(f"Warning: {line}")
    for line in oddities(STUDY):
        print(f"Warning: {RUN.study_file}: {line}")
    for line in RUN.unread():
        print(f"Warning: {line}")
    planned = {job.rule.name for job in planned_jobs()}
    if "plan" in planned:
        print(RUN.plan(declared()))
    if planned != {"plan"}:
        training, sampling = planned_cells("train_policy"), planned_cells("sample_answers")
        refused(RUN.check_hardware, training, sampling, declared())
        check_retraining()
        # A cluster is told a number of jobs, this machine one of cores.
        limit = workflow.resource_settings
        print(RUN.opening(limit.nodes or limit.cores, declared(), len(training)))


onsuccess:
    if {job.rule.name for job in planned_jobs()} != {"plan"}:
        print(RUN.closing())


onerror:
    print(messages.stopped(FILES.folder))
