"""Views of the experiment for MLflow's pages: which columns, which runs, which chart.

They are kept as MLflow keeps a view that someone shares; add `?viewStateShareKey=cells` to the
address of the experiment's runs to see one.
"""

import json

from grpo_replay.tracking.store import Store

_ALL = {
    "selectedColumns": [
        *("tags.`scale`", "tags.`method`", "metrics.`eval/avg`", "metrics.`eval/pass`"),
        *("tags.`tables`", "tags.`status`"),
    ],
    "columnOrder": [],
    "columnWidths": {},
    "runsHiddenMode": "SHOW_ALL",
    # Another order than by time: the pages then list runs flat, not below their parents.
    "orderByKey": "metrics.`eval/avg`",
    "orderByAsc": False,
    "startTime": "ALL",
    "lifecycleFilter": "Active",
    "datasetsFilter": [],
    "modelVersionFilter": "All Runs",
}
_SCORED = "tags.stage = 'scored' and tags.status = 'complete'"
VIEWS = {
    "cells": {**_ALL, "searchFilter": _SCORED},
    "reward": {
        **_ALL,
        "searchFilter": f"{_SCORED} and tags.tables LIKE '%table01%' and tags.method != 'base'",
        "chartsSearchFilter": "reward/mean",
        # One step samples few prompts: without smoothing the lines hide each other.
        "globalLineChartConfig": {
            "xAxisKey": "step",
            "lineSmoothness": 80,
            "selectedXAxisMetricKey": "",
        },
    },
}


def sync_views(store: Store) -> None:
    """Keep the views in the experiment, where they differ."""
    tags = store.client.get_experiment(store.experiment).tags
    for name, view in VIEWS.items():
        key, value = f"mlflow.sharedViewState.{name}", json.dumps(view)
        if tags.get(key) != value:
            store.client.set_experiment_tag(store.experiment, key, value)
