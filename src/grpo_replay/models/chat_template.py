"""Whether a model's tokenizer can hold the study's conversations, and says the same every day.

Found once, before the first job or right after a download, and not by every cell of the study.
"""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_replay.errors import ModelError
from grpo_replay.models.end_tokens import end_token_ids
from grpo_replay.tasks.any_task import DEFAULT_TASK

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CLOCK = "strftime_now"  # the function by which a template asks transformers for the date
FIXED_DATE = datetime(2024, 7, 26)  # what Llama's templates print where there is no clock
TEMPLATE_FILE = "chat_template.jinja"  # wins over the template in tokenizer_config.json
_DIRECTIVES = "aAbBcdDeFgGhHIjkmMnpPrRsSTuUVwWxXyYzZ"
_TRIES = 5
_QUESTION = "What is 1+1?"


def check_chat(folder: Path, name: str) -> None:
    """Refuse a model whose tokenizer cannot be used as the study uses it; no code in it is run.

    Raises:
        ModelError: where configuration or tokenizer cannot be read; without a chat template or end
            token; where the template refuses the system turn, leaves out the question, or prints
            something else each time.
    """
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig
    from transformers.utils import GENERATION_CONFIG_NAME

    local = {"local_files_only": True, "trust_remote_code": False}
    generation = None
    try:
        # Code of the model's own would not be there; it is not asked for either.
        config = AutoConfig.from_pretrained(folder, **local)
        tokenizer = AutoTokenizer.from_pretrained(folder, **local)
        if (folder / GENERATION_CONFIG_NAME).is_file():
            generation = GenerationConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # a file of another shape fails anywhere, by any type
        raise ModelError(
            f"{name}: its configuration or tokenizer cannot be read "
            f"({_told(error)}); fetch the folder again"
        ) from error
    if not tokenizer.chat_template:
        raise ModelError(f"{name}: its tokenizer has no chat template; take a model that has")
    _check_rendering(tokenizer, name)
    end_token_ids(config, generation, tokenizer)
    if tokenizer.eos_token_id is None:  # training pads with it, a warm start ends answers with it
        raise ModelError(
            f"{name}: its tokenizer names no end token; set eos_token in tokenizer_config.json"
        )


def _check_rendering(tokenizer: "PreTrainedTokenizerBase", name: str) -> None:
    answered = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    try:
        tokenizer.apply_chat_template(answered, tokenize=False)
        # By a fixed date: a day that begins between two tries is no reason to refuse.
        template = with_fixed_date(tokenizer.get_chat_template())
        texts = {_rendered(tokenizer, template) for _ in range(_TRIES)}
    except Exception as error:  # templates raise what they like
        raise ModelError(
            f"{name}: its chat template does not take the study's prompt, a system and a user "
            f"turn ({_told(error)}); take a model whose template does"
        ) from error
    if len(texts) > 1:
        raise ModelError(
            f"{name}: its chat template prints another prompt each time, so that no sampling could "
            "be continued; take a model whose template does not"
        )
    if _QUESTION not in texts.pop():
        raise ModelError(f"{name}: its chat template leaves out the question; take another model")


def _rendered(tokenizer: "PreTrainedTokenizerBase", template: str) -> str:
    return tokenizer.apply_chat_template(
        DEFAULT_TASK.messages({"problem": _QUESTION}),
        chat_template=template,
        tokenize=False,
        add_generation_prompt=True,
    )


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def fix_date(folder: Path) -> bool:
    """Let the chat template of a model folder print `FIXED_DATE` for the date of the day.

    A prompt that changes by night would be another one in the rest of a training or sampling, and
    in each cell of a comparison. Returns whether the template asks for the date at all.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    template = tokenizer.get_chat_template()
    fixed = with_fixed_date(template)
    if fixed != template:
        (folder / TEMPLATE_FILE).write_text(fixed, encoding="utf-8")
    return fixed != template


def with_fixed_date(template: str) -> str:
    """The template behind a macro that takes the place of the clock; unchanged without a clock.

    A macro, since a template may give the clock's function another name before it calls it.
    """
    if CLOCK not in template or template.startswith(_MACRO):
        return template
    return _MACRO + template


def _macro() -> str:
    replacements = "".join(
        f" | replace({f'%{flag}{directive}'!r}, {FIXED_DATE.strftime(f'%{flag}{directive}')!r})"
        for directive in _DIRECTIVES
        for flag in ("", "-")
    )
    # The line's end behind `endmacro` is not printed; one that the template begins with is.
    return f"{{% macro {CLOCK}(form) %}}{{{{ form{replacements} }}}}{{% endmacro %}}\n"


_MACRO = _macro()
