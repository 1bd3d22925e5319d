"""The only place that knows what lies where below results/."""
