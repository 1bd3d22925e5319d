"""Benchmarks, sampling of answers, and grading."""
