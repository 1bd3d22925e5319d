"""What is asked for: a study file, its cells, the settings of a run."""
