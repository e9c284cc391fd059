# Trains every cell of a sweep, then makes its tables, its figures and its report.
#
#   snakemake -n                                          what would run, for config/default.yaml
#   snakemake --profile profiles/local                    run it on this machine
#   snakemake --profile profiles/local --configfile FILE  another sweep

from snakemake.utils import min_version

min_version("9.0")


# Snakemake would merge --configfile into this one, and the default's keys would leak into it.
if not workflow.overwrite_configfiles:

    configfile: "config/default.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/slurm.smk"
include: "workflow/rules/prepare.smk"
include: "workflow/rules/preflight.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/failures.smk"


rule all:
    default_target: True
    input:
        SUMMARIES,  # by name: a report of what there was must not hide a cell that failed
        REPORT,
