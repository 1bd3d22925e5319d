"""What a notebook looks at: cells, answers, rollouts, curves."""
