"""Reference implementation of rollout-level, advantage-prioritized experience replay for GRPO
(arXiv 2606.04560).
"""
