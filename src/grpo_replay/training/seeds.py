"""Where the random numbers of a cell's training come from."""

import numpy as np


def purpose_seed(seed: int, purpose: str, *place: int) -> int:
    """A seed below 2^32 for one purpose, and one place within it, from the seed of a cell.

    Other seeds, purposes and places give independent generators; equal ones give the same.
    """
    sequence = np.random.SeedSequence([seed, *purpose.encode()], spawn_key=place)
    return int(sequence.generate_state(1)[0])
