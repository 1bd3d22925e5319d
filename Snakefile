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


rule tables:
    input:
        TABLES,


rule figures:
    input:
        FIGURES,


onstart:
    # A cluster is told a number of jobs, this machine one of cores.
    print(opening(workflow.resource_settings.nodes or workflow.cores))


onsuccess:
    print(closing())


onerror:
    print(plan.stopped(Path(RESULTS)))
