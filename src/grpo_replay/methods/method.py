"""A method: one part on every axis. What is left out is the paper's plain GRPO."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError, model_validator

from grpo_replay.errors import suggestion
from grpo_replay.methods.advantages import AnyAdvantage, GroupNormalised
from grpo_replay.methods.losses import AnyLoss, Clipped
from grpo_replay.methods.replay import AnyReplay, NoReplay
from grpo_replay.methods.selection import AnySelection, KeepAll
from grpo_replay.parts import Part

Setting = float | int | str | bool | None

# What a setting was when it was first recorded: ids name differences from these. Never change an
# entry, add one for each new setting (a test lists what lacks).
RECORDED_DEFAULTS: dict[str, Setting] = {
    "advantage_over": "subset",
    "age_decay": None,
    "alpha": 0.5,
    "beta": 0.01,
    "capacity": 30_000,
    "dual_clip": 10.0,
    "eps": 1e-6,
    "high": 0.28,
    "low": 0.2,
    "ratio": 0.5,
    "tau_max": 10,
    "unit": "rollout",
    "warmup": 20,
}


class Method(Part):
    """What a study says of a method.

    Attributes:
        select: which fresh rollouts of a group count.
        advantage: how far a rollout is above its group.
        replay: what a step trains on besides its fresh rollouts.
        loss: towards what it trains.
    """

    select: AnySelection = KeepAll()
    advantage: AnyAdvantage = GroupNormalised()
    replay: AnyReplay = NoReplay()
    loss: AnyLoss = Clipped()

    @model_validator(mode="after")
    def _groups_stay_whole(self) -> "Method":
        if self.loss.whole_groups and not self.replay.draws_groups:
            raise ValueError(
                f"loss {self.loss.label()} compares the rollouts of a group: give replay.unit query"
            )
        return self


def setting_of(part: Part, path: str) -> Any:
    """The value of a setting, by its path: `replay.tau_max`.

    Raises:
        ValueError: where a part of the method has no such setting.
    """
    value: Any = part
    for name in path.split("."):
        fields = type(value).model_fields if isinstance(value, Part) else {}
        if name not in fields:
            known = f"; there are: {', '.join(fields)}" if fields else ""
            raise ValueError(f"{path}: no setting {name!r}{suggestion(name, fields)}{known}")
        value = getattr(value, name)
    return value


def recorded_setting(part: Part, path: str) -> Any:
    """What a study says of a setting; where it says nothing, the default that was first recorded.

    So a cell keeps its id when a default changes.
    """
    *owners, name = path.split(".")
    for owner in owners:
        part = getattr(part, owner)
    if name in part.model_fields_set or name in part.words():
        return getattr(part, name)
    return RECORDED_DEFAULTS.get(name, type(part).model_fields[name].default)


def with_setting(part: Part, path: str, value: Setting) -> Part:
    """The same with one setting changed, checked as a study is. The word that names a part changes
    the part: its other settings are then those of the new one.
    """
    name, _, rest = path.partition(".")
    setting_of(part, path)
    inner = getattr(part, name)
    if not rest:
        changed: Any = value
    elif rest in inner.words():
        changed = {rest: value}
    else:
        changed = with_setting(inner, rest, value)
    given = {field: getattr(part, field) for field in part.model_fields_set - {name}}
    return type(part).model_validate({**given, name: changed})


def vary(method: Method, settings: Mapping[str, Setting]) -> Method:
    """The method with some settings changed, by path.

    Raises:
        ValueError: naming path, value and what is wrong with it.
    """
    for path, value in settings.items():
        try:
            method = with_setting(method, path, value)
        except ValidationError as error:
            fault = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise ValueError(f"vary {path} {value}: {fault}") from None
        except ValueError as error:
            raise ValueError(f"vary {error}") from None
    return method
