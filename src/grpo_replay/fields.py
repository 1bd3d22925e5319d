"""Sections of a study that say where problems, benchmarks and models come from.

Importing this module must stay cheap, as config.py's.
"""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Base of every section: frozen, and an unknown key is an error, not a silent default; true is
    no number, and neither is the text "1".
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)
