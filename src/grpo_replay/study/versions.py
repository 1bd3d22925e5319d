"""Versions of the code that decides a result, one a stage: Snakemake does not see edits of a
package. A raised version makes again what its stage makes, and what is made from that.

`tools/record_versions.py` lists the modules that each stands for, and records them; a test asks for
the version where one has changed.
"""

# The training problems, those of the benchmarks, and the choice of the ones to train on.
PROBLEMS_VERSION = 1
# The models that every method starts from.
MODEL_VERSION = 1
# What a training cell learns.
ALGORITHM_VERSION = 1
# Which answers are drawn: all cells are then sampled again, and none is trained, but where a first
# pass (`prompt_selection`) drew what a study trains on.
SAMPLER_VERSION = 2
# The verdicts, or what a file of grades holds: all stored samples are then graded again.
GRADER_VERSION = 4
# What is computed from the verdicts: all cells are then scored again, from stored grades.
SCORING_VERSION = 1
