"""Rollout storage, draws and batch composition: numpy only, no training engine."""
