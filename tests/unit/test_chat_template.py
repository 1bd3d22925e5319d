"""Chat templates as published models have them, through transformers' own tokenizer."""

import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from transformers import AutoTokenizer
from transformers.utils import chat_template_utils

from grpo_replay.errors import ConfigError, GrpoReplayWarning, ModelError
from grpo_replay.models.chat_template import check_chat, fix_date, with_fixed_date
from grpo_replay.models.config import PretrainedModel
from grpo_replay.models.folder import open_folder
from grpo_replay.models.local import count_parameters
from grpo_replay.models.make import copy_pretrained
from grpo_replay.planning.preflight import check_inputs
from grpo_replay.study.file import load_study
from grpo_replay.tasks.any_task import DEFAULT_TASK

TINY = Path(__file__).parents[1] / "fixtures" / "studies" / "tiny.yaml"
TURNS = (
    "{% for message in messages %}<|im_start|>{{ message['role'] + '\n' + message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}" + TURNS
)
LLAMA = (
    "{%- if not date_string is defined %}\n    {%- if strftime_now is defined %}\n"
    '        {%- set date_string = strftime_now("%d %b %Y") %}\n    {%- else %}\n'
    '        {%- set date_string = "26 Jul 2024" %}\n    {%- endif %}\n{%- endif %}\n'
    '{{- "Today Date: " + date_string + "\\n\\n" }}\n' + TURNS
)
SMOLLM3 = '{%- set today = strftime_now("%d-%B-%Y") -%}{{ "Today Date: " ~ today ~ "\n" }}' + TURNS
RENAMED = "{%- set clock = strftime_now %}Time: {{ clock('%H:%M %-d %A') }}\n" + TURNS
DATED = {
    LLAMA: "Today Date: 26 Jul 2024\n\n<|im_start|>system",
    SMOLLM3: "Today Date: 26-July-2024\n<|im_start|>system",
    RENAMED: "Time: 00:00 26 Friday\n<|im_start|>system",
}


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local model folder that may be edited."""
    monkeypatch.setenv("GRPO_REPLAY_MODELS", str(tmp_path))
    return Path(shutil.copytree(tiny_model, tmp_path / "tiny"))


def use(folder: Path, template: str) -> None:
    (folder / "chat_template.jinja").write_text(template)


def drop(folder: Path, *keys: str) -> None:
    """Take keys out of the configuration of the tokenizer, and end tokens out of the model's."""
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in config.items() if k not in keys}))


def named(folder: Path) -> PretrainedModel:
    return PretrainedModel(
        source="pretrained", name="org/tiny", revision="0" * 40, parameters=count_parameters(folder)
    )


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (GEMMA, "does not take the study's prompt.*System role not supported"),
        ("{{ messages[0].content.parts[0] }}", "does not take the study's prompt.*UndefinedError"),
        ("{% for %}", "does not take the study's prompt.*TemplateSyntaxError"),
        ("{{ messages[0].content }}", "leaves out the question"),
        (TURNS + "{{ range(99999) | random }}", "another prompt each time"),
    ],
)
def test_a_template_that_does_not_suit_is_refused_before_a_run_and_in_the_models_job(
    folder: Path, template: str, message: str, tmp_path: Path
) -> None:
    use(folder, template)
    study = load_study(TINY)
    scale = study.scales["s"].model_copy(update={"model": named(folder)})
    study = study.model_copy(update={"scales": {"s": scale, "t": scale}})
    with pytest.raises(ConfigError, match=f"scales.s.model: org/tiny: .*{message}"):
        check_inputs(TINY, study)
    check_inputs(TINY, study, tokenizers=False)  # as in a job, which has no time for it
    with pytest.raises(ModelError, match=f"org/tiny: .*{message}"):
        copy_pretrained(named(folder), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_tokenizer_without_an_end_token_is_refused(folder: Path) -> None:
    check_chat(folder, "org/tiny")
    drop(folder, "eos_token")
    with pytest.raises(ModelError, match="org/tiny: its tokenizer names no end token; set eos_tok"):
        check_chat(folder, "org/tiny")


@pytest.fixture
def tomorrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of templates, 400 days ahead."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None) -> datetime:
            return datetime.now(tz) + timedelta(days=400, hours=7)

    monkeypatch.setattr(chat_template_utils, "datetime", Ahead)


@pytest.mark.parametrize("template", DATED)
def test_a_template_prints_the_same_date_every_day(
    folder: Path, tmp_path: Path, template: str, request: pytest.FixtureRequest
) -> None:
    """So that a sampling that is continued the day after has its prompts again."""
    use(folder, template)
    with pytest.warns(GrpoReplayWarning, match="prints the date of the day.* 26 July 2024"):
        copy_pretrained(named(folder), tmp_path / "out")
    made = [open_folder(path) for path in (tmp_path / "out", folder)]
    prompts = [
        DEFAULT_TASK.messages({"problem": "1+1?"}),
        DEFAULT_TASK.messages({"problem": "2+2?"}),
    ]
    today = [model.render(prompts) for model in made]
    request.getfixturevalue("tomorrow")
    chat_template_utils._compile_jinja_template.cache_clear()
    ahead = [model.render(prompts) for model in made]
    assert today[0] == ahead[0] and today[1] != ahead[1]
    assert made[0].decode(ahead[0])[0].startswith(DATED[template].partition("<|im")[0])


def test_a_copy_is_the_same_again_and_its_record_holds_what_came(
    folder: Path, tmp_path: Path
) -> None:
    use(folder, LLAMA)
    with pytest.warns(GrpoReplayWarning):
        copy_pretrained(named(folder), tmp_path / "out")
        first = (tmp_path / "out" / "chat_template.jinja").read_text()
        copy_pretrained(named(folder), tmp_path / "out")
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == first != LLAMA
    assert fix_date(tmp_path / "out") is False  # once is enough


def test_a_template_without_a_clock_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    copy_pretrained(named(folder), tmp_path / "out")
    for file in folder.iterdir():
        assert (tmp_path / "out" / file.name).read_bytes() == file.read_bytes()


def test_a_template_in_the_tokenizers_configuration_is_fixed_too(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": SMOLLM3}))
    assert fix_date(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.chat_template == with_fixed_date(SMOLLM3)


def test_weights_that_nothing_loads_are_not_copied(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "model.safetensors", folder / "consolidated.safetensors")
    copy_pretrained(named(folder), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").glob("*.safetensors")] == ["model.safetensors"]
