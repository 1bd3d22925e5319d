"""Wrong study files: one message with file and line or key, whatever is in them."""

import random
import re
import time
from pathlib import Path

import pytest
import yaml

from grpo_replay.errors import ConfigError, GrpoReplayError
from grpo_replay.planning.preflight import check_inputs
from grpo_replay.study.axes import axes_of
from grpo_replay.study.cells import expand, resolve, value_text
from grpo_replay.study.file import load_study
from grpo_replay.study.oddities import oddities
from grpo_replay.tasks.clock import check_problems, clock_problems

REPOSITORY = Path(__file__).parents[2]
TINY = REPOSITORY / "tests" / "fixtures" / "studies" / "tiny.yaml"
TEXT = TINY.read_text()


def load(folder: Path, content: str | bytes):
    """Load a file of this content, as the workflow does: cells and inputs are looked at too."""
    path = folder / "tiny.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    study = load_study(path)
    for cell in expand(study).values():
        resolve(study, cell)
    check_inputs(path, study)
    return study


def changed(old: str, new: str) -> str:
    assert old in TEXT
    return TEXT.replace(old, new)


def refusal(folder: Path, content: str | bytes) -> str:
    """The one line that refuses a file."""
    with pytest.raises(ConfigError) as error:
        load(folder, content)
    message = str(error.value)
    assert "tiny.yaml" in message and "\n" not in message and len(message) < 600, message
    return message


TITLE = "title: Smallest study, for tests"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (changed(TITLE, "title: Zür").encode("latin-1"), ", line 3: not UTF-8"),
        (TEXT.encode("utf-16"), ", line 1: not UTF-8"),
        (changed(TITLE, "title: 2024-13-45"), ", line 3: not valid YAML: 2024-13-45 is read in"),
        (changed(TITLE, "title: 2024-01-01T25:61:61"), ", line 3"),
        (changed(TITLE, "2024-02-31: 2"), ", line 3"),
        (changed("steps: 4\n", f"steps: {'9' * 5000}\n"), "a number of 5000 digits"),
        *((changed("steps: 4\n", f"steps: !!{tag}\n"), "tags are not read") for tag in
          ("int abc", "float abc", "bool abc", "int ''", "timestamp abc", "python/name:os.x")),
        (changed(TITLE, "title: " + "[" * 5000), "nested more than 50 deep"),
        (changed(TITLE, "title: " + "[" * 10_000 + "]" * 10_000), "nested more than 50 deep"),
        (changed(TITLE, "title: " + "{a: " * 3000), "nested more than 50 deep"),
        (changed("[0.9, 0.999]", "[0.9, x]"), "training.adam_betas.1"),
        (changed("[0.9, 0.999]", "[0.9]"), "training.adam_betas"),
        (changed("[0.9, 0.999]", "[0.9, 1]"), "training.adam_betas.1"),
        (changed(TITLE, r'title: "odd \ud800 title"'), "a text holds U+D800"),
        (changed(TITLE, r'title: "a\0b"'), "a text holds U+0000"),
        (changed(TITLE, TITLE + "\n? [a]\n: 1"), "no key"),
        (changed(TITLE, "title: &a [*a]"), "more than 20000 values"),
        (TEXT + "<<: {title: x}\n", "<<: unknown key"),
        (TEXT + "*a\n", ", line "),
        (TEXT + "\x01", "not valid YAML"),
        (TEXT + "x" * 600_000, "more than 500 kB"),
        (changed("seeds: [42]", "seeds: [042]"), ", line 23: not valid YAML: 042 is read in"),
        *((changed("steps: 4\n", f"steps: {text}\n"), f"{text} is read in two ways") for text in
          ("1:30", "010", "08", "1_000", "0x10", "0b1", "0o7", "yes", "off")),
        (changed("top_k: 0", 'top_k: "1_000"'), "evaluation.top_k"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value[-30:],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, content: str | bytes, told: str
) -> None:
    assert told in refusal(tmp_path, content)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("gpus: 0", "gpus: true", "scales.s.gpus"),
        ("title: Clock-4", "title: Clock-3", "clock3.title and clock4.title are both 'Clock-3'"),
        ("steps: 4\n", "steps: true\n", "training.steps"),
        ("steps: 4\n", "steps: 4.0\n", "training.steps"),
        ("learning_rate: 3.0e-4", "learning_rate: true", "training.learning_rate"),
        ("learning_rate: 3.0e-4", "learning_rate: 1", "training.learning_rate"),
        ("learning_rate: 3.0e-4", "learning_rate: 1e-320", "training.learning_rate"),
        ("temperature: 0.6", "temperature: 1e-320", "evaluation.temperature"),
        ("temperature: 1.0", "temperature: 1e18", "training.temperature"),
        ("updates: 300", "updates: 1e30", "scales.s.model.updates"),
        ("updates: 300", f"updates: {10**25}", "scales.s.model.updates"),
        ("layers: 2", "layers: 2147483648", "scales.s.model.layers"),
        ("seed: 0}", "seed: 18446744073709551616}", "scales.s.model.seed"),
        ("heads: 2", "heads: 32", "scales.s.model: hidden_size / heads must be even"),
        ("seed: 11", "seed: 4294967296", "benchmarks.clock3.seed"),
        ("k: 4, seed: 11", "k: 2147483648, seed: 11", "benchmarks.clock3.k"),
        ("n_problems: 6, k: 4, seed: 11", "n_problems: 1000000, k: 4, seed: 11", "n_problems"),
        ("n_problems: 6, k: 4, seed: 11", "n_problems: 81, k: 4, seed: 11", "do not exist"),
        ("count: 60", "count: 1000000", "problems.count"),
        ("max_step: 2, steps: [2", "max_step: 9223372036854775808, steps: [2", "problems.max_step"),
        ("evaluation_batch: 64", "evaluation_batch: 2147483648", "scales.s.evaluation_batch"),
        ("samples_per_wave: 2", "samples_per_wave: 1000000000", "evaluation.samples_per_wave"),
        ("evaluation_max_tokens: 24", "evaluation_max_tokens: 100000", "evaluation_max_tokens"),
        ("max_completion_tokens: 24", "max_completion_tokens: 1024", "max_completion_tokens"),
        ("top_k: 0", "top_k: 1", "evaluation.top_k: 1 makes all answers to a problem equal"),
        ("first_wave_seed: 42", "first_wave_seed: 4294967296", "evaluation.first_wave_seed"),
        ("clock4: {", "c" * 300 + ": {", "benchmarks."),
        ("clock4: {", "c" * 30 + ": {", "same letters twenty times"),
        (TITLE, "title: " + "x" * 300, "title"),
    ],
)
def test_a_value_that_cannot_work_is_refused_with_its_key(
    tmp_path: Path, old: str, new: str, key: str
) -> None:
    start = time.process_time()
    assert key in refusal(tmp_path, changed(old, new))
    assert time.process_time() - start < 10


@pytest.mark.parametrize("seeds", ["[4294967296]", "[true]", "[-1]", "[1.5]", '["42"]'])
def test_a_wrong_seed_of_the_grid_is_refused(tmp_path: Path, seeds: str) -> None:
    with pytest.raises(ConfigError, match=r"grid\.0\.seeds\.0"):
        load(tmp_path, changed("seeds: [42]", f"seeds: {seeds}"))


def test_a_list_that_is_too_short_names_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load(tmp_path, changed("[0.9, 0.999]", "[]"))
    first, second = str(error.value).splitlines()
    assert "training.adam_betas.0: missing" in first and "adam_betas.1: missing" in second


def test_a_file_of_very_many_keys_or_cells_is_refused_at_once(tmp_path: Path) -> None:
    start = time.process_time()
    keys = "".join(f"k{n}: 1\n" for n in range(40_000))
    assert "more than 20000 values" in refusal(tmp_path, TEXT + keys)
    with pytest.raises(ConfigError) as error:
        load(tmp_path, TEXT + "".join(f"k{n}: 1\n" for n in range(9000)))
    assert str(error.value).count("\n") == 40 and "8960 more mistakes" in str(error.value)
    axis = list(range(1, 1001))
    many = f"seeds: {axis}, vary: {{replay.tau_max: {axis}}}"
    cells = changed("seeds: [42], vary: {replay.tau_max: [1, 10]}", many)
    assert "grid: 1000004 cells, more than 20000" in refusal(tmp_path, cells)
    laughs = "".join(f"l{n}: &l{n} [{', '.join(9 * [f'*l{n - 1}'])}]\n" for n in range(1, 20))
    assert "more than 20000 values" in refusal(tmp_path, f"l0: &l0 [1]\n{laughs}{TEXT}")
    assert time.process_time() - start < 60


def test_chunks_that_have_no_seeds_are_refused_before(tmp_path: Path) -> None:
    text = changed("samples_per_wave: 2", "samples_per_wave: 1").replace("k: 4", "k: 10000")
    text = text.replace("evaluation_batch: 64", "evaluation_batch: 100000")
    assert "scales.s.evaluation_batch: 20000 chunks of answers" in refusal(tmp_path, text)


def test_settings_that_differ_are_cells_that_differ(tmp_path: Path) -> None:
    ages = "replay.tau_max: [1, 10]"
    ratios = "replay.ratio: [0.3333333, 0.3333334, 0.33333335, 0.5, 0.50]"
    cells = expand(load(tmp_path, changed(ages, ratios)))
    ours = [axes_of(c).replay_ratio for c in cells.values() if c.method == "ours"]
    assert sorted(ours) == [0.3333333, 0.33333335, 0.3333334, 0.5]
    assert "s/ours-replay.ratio0.33333335-seed42" in cells
    zeros = expand(load(tmp_path, changed(ages, "replay.priority.alpha: [0.0, -0.0]")))
    names = [name for name in zeros if name.startswith("s/ours-replay")]
    assert names == ["s/ours-replay.priority.alpha0-seed42"]
    assert [value_text(x) for x in (1234567, 0.1 + 0.2)] == ["1234567", repr(0.1 + 0.2)]


def test_yaml_as_people_and_programs_write_it_is_read(tmp_path: Path) -> None:
    study = load(tmp_path, changed("learning_rate: 3.0e-4", "learning_rate: 3e-4"))
    assert study == load(tmp_path, TEXT)
    assert study == load(tmp_path, yaml.safe_dump(yaml.safe_load(TEXT)))
    quoted = load(tmp_path, changed(TITLE, 'title: "2024-01-01, no. 042 at 1:30"'))
    assert quoted.title == "2024-01-01, no. 042 at 1:30"
    shared = TEXT.replace("seeds: [42]", "seeds: &seeds [42]", 1).replace(
        "seeds: [42]", "seeds: *seeds"
    )
    assert study == load(tmp_path, shared)
    assert study == type(study).model_validate(study.model_dump(mode="json"))


def test_the_check_of_a_count_agrees_with_drawing() -> None:
    texts = {problem["problem"] for problem in clock_problems(2, 55, 5, 2, seed=0)}
    for seed in range(3):  # of 80 texts, those of the training split
        texts |= {problem["problem"] for problem in clock_problems(2, 55, 5, 2, seed=seed)}
    check_problems(2, len(texts), 5, 2)
    assert len(clock_problems(2, len(texts), 5, 2, seed=0)) == len(texts)
    for find in (check_problems, lambda *sizes: clock_problems(*sizes, seed=0)):
        with pytest.raises(ConfigError, match=f"count: {len(texts) + 1} different train problems"):
            find(2, len(texts) + 1, 5, 2)


def test_what_is_odd_is_told_and_not_refused(tmp_path: Path) -> None:
    assert oddities(load(tmp_path, TEXT)) == []
    late = "{kind: abs_advantage}, warmup: 4"
    [line] = oddities(load(tmp_path, changed("{kind: abs_advantage}, warmup: 1", late)))
    assert line == "methods.ours.replay.warmup: 4 of 4 steps: nothing is ever replayed"
    [line] = oddities(load(tmp_path, changed("learning_rate: 3.0e-4", "learning_rate: 0.1")))
    assert line.startswith("training.learning_rate: 0.1 is unusual (1e-08 to 0.001): ")


@pytest.mark.parametrize("path", sorted((REPOSITORY / "config" / "studies").glob("*.yaml")))
def test_no_committed_study_is_odd(path: Path) -> None:
    assert oddities(load_study(path)) == []


# --- files nobody thought of ---

ODD = [
    *("true", "null", "~", "''", "[]", "{}", "-1", "0", "-0.0", "1e999", ".nan", "-.inf", "1e-320"),
    *("4294967296", "18446744073709551616", "9" * 40, "1_000", "042", "1:30", "0x1F", "2-3"),
    *(
        "2024-02-31",
        "!!int x",
        "!!binary x",
        "&a",
        "*b",
        "? x",
        "- -",
        "{a: {b: [c]}}",
        "[[[[]]]]",
        '"\\ud800"',
    ),
    *(
        '"\\0"',
        "yes",
        "'" + "a" * 300 + "'",
        "é",
        "\u2028",
        "|\n  x",
        "%",
        "@",
        "`",
        "[1, true, x]",
    ),
    *(
        "1e30",
        "0.1e1",
        "+5",
        ".5",
        "=",
        "<<",
        "from_scratch",
        "pretrained",
        "clock",
        "file",
        "none",
    ),
]


def mutated(random_: random.Random) -> bytes:
    """The tiny study with one to three changes: a value, a line, a byte."""
    text = TEXT
    for _ in range(random_.randint(1, 3)):
        kind = random_.randrange(5)
        if kind == 0:  # a value
            found = random_.choice(list(re.finditer(r"(?<=: )[^\s,{}\[\]]+", text)))
            text = text[: found.start()] + random_.choice(ODD) + text[found.end() :]
        elif kind == 1:  # a value of a list, a section
            found = random_.choice(list(re.finditer(r"\[[^\]]*\]|\{[^}]*\}", text)))
            text = text[: found.start()] + random_.choice(ODD) + text[found.end() :]
        elif kind == 2:  # a key
            found = random_.choice(list(re.finditer(r"[\w.-]+(?=:)", text)))
            text = text[: found.start()] + random_.choice(ODD) + text[found.end() :]
        elif kind == 3:  # a line less, or one twice
            lines = text.splitlines(keepends=True)
            place = random_.randrange(len(lines))
            lines[place : place + 1] = lines[place : place + 1] * random_.choice((0, 2))
            text = "".join(lines)
        else:
            place = random_.randrange(len(text))
            text = text[:place] + chr(random_.randrange(1, 0x250)) + text[place + 1 :]
    content = text.encode()
    if random_.random() < 0.1:
        place = random_.randrange(len(content))
        content = content[:place] + random_.randbytes(2) + content[place:]
    return content


@pytest.mark.parametrize("seed", range(20))
def test_no_study_file_ends_in_anything_but_a_message(tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    refused = 0
    for _ in range(20):
        content = mutated(random_)
        try:
            load(tmp_path, content)
        except GrpoReplayError as error:
            refused += 1
            assert all("tiny.yaml" in line for line in str(error).splitlines()), (content, error)
    assert refused
