"""A selection: half of the kept rollouts are a group's worst, half its best."""

import numpy as np

from grpo_replay.methods.selection import KeepSome


class Extremes(KeepSome):
    """The keep / 2 lowest and the highest rewards of each group; the odd one is a high one."""

    def ranks(self, ascending: np.ndarray) -> np.ndarray:
        """Which of a group's rewards, sorted rising, are kept."""
        low, n = self.keep // 2, len(ascending)
        return np.concatenate([np.arange(low), np.arange(n - self.keep + low, n)])
