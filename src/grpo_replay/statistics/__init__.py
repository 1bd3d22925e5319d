"""Metrics, intervals and tests, on plain arrays."""
