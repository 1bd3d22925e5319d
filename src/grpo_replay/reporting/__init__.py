"""Scores, tables and figures, in the shape of the paper."""
