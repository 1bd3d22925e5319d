"""MLflow: a view of the results, the only package that imports it. Losing the store loses no
result.

`live` logs a cell while it trains, from a thread of its own; `sync` makes the store equal to what
the results folder holds, from nothing if need be. The store is where the variable
MLFLOW_TRACKING_URI says; the workflow sets it. Why a store failed is told, and stops no job.
"""
