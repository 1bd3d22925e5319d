"""Sampling with a real, tiny, random model: streams, chunks, interruption, end tokens."""

import dataclasses
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from grpo_replay.errors import ConfigError, DataError, ModelError
from grpo_replay.evaluation.engines import TransformersEngine, open_engine
from grpo_replay.evaluation.finished import Finished
from grpo_replay.evaluation.nucleus import Nucleus
from grpo_replay.evaluation.sample import plan_chunks, sample_answers
from grpo_replay.evaluation.sample_files import write_samples
from grpo_replay.evaluation.settings import SamplingSettings
from grpo_replay.models.folder import open_folder
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.problems import read_problems, write_problems

SETTINGS = SamplingSettings(
    sampler_version=2,
    engine="transformers",
    temperature=0.6,
    top_p=0.8,
    top_k=0,
    samples_per_wave=8,
    first_wave_seed=42,
    batch=16,  # two problems a chunk
    k={"five": 16, "three": 4},
    max_tokens=12,
)


@pytest.fixture(scope="module")
def whole(
    tiny_model: Path, benchmarks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the samples of a run that was never interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    sample_answers(tiny_model, benchmarks, SETTINGS, folder / "samples", folder / "work")
    assert not (folder / "work").exists()
    return folder / "samples"


def assert_same_folder(one: Path, other: Path) -> None:
    """Byte by byte, but for the seconds that it took."""
    names = sorted(path.name for path in one.iterdir() if path.is_file())
    assert names == sorted(path.name for path in other.iterdir() if path.is_file())
    for name in names:
        contents = [(folder / name).read_text("latin-1") for folder in (one, other)]
        first, second = (re.sub(r'(?<="seconds": )[\d.e-]+', "", text) for text in contents)
        assert first == second, name


def stop_after(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """Interrupt the real engine at its call number `calls`, from 0."""
    generate = TransformersEngine.generate
    left = iter(range(calls))

    def interrupted(self: TransformersEngine, *args: object) -> list:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return generate(self, *args)

    monkeypatch.setattr(TransformersEngine, "generate", interrupted)


@pytest.fixture
def interrupted(
    tiny_model: Path, benchmarks: dict[str, Path], tmp_path: Path
) -> Callable[[int], Path]:
    """Return a function that samples into `tmp_path` up to a chunk and gives the work folder."""

    def run(calls: int) -> Path:
        work = tmp_path / "work"
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            stop_after(patch, calls)
            sample_answers(tiny_model, benchmarks, SETTINGS, tmp_path / "samples", work)
        return work

    return run


# --- what is written -------------------------------------------------------------------------


def test_two_waves_with_their_seeds_and_ids(whole: Path, benchmarks: dict[str, Path]) -> None:
    rows = pq.read_table(whole / "five.parquet").to_pylist()
    ids = [problem["id"] for problem in read_problems(benchmarks["five"])]
    assert [(row["problem_id"], row["sample_id"]) for row in rows] == [
        (problem_id, sample) for problem_id in ids for sample in range(16)
    ]
    assert [row["wave_seed"] for row in rows] == 5 * (8 * [42] + 8 * [43])
    assert {row["benchmark"] for row in rows} == {"five"}
    assert {row["wave_seed"] for row in pq.read_table(whole / "three.parquet").to_pylist()} == {42}
    # A random model hardly repeats itself in 12 tokens: an equal text would be an equal stream.
    assert len({row["text"] for row in rows}) == len(rows)


def test_lengths_agree_with_the_finish_reason(whole: Path) -> None:
    rows = pq.read_table(whole / "five.parquet").to_pylist()
    assert {row["finish_reason"] for row in rows} <= {"stop", "length"}
    assert all(row["n_tokens"] == 12 for row in rows if row["finish_reason"] == "length")
    assert all(1 <= row["n_tokens"] <= 12 for row in rows)


def test_manifest_tells_how_the_samples_were_made(whole: Path) -> None:
    manifest = json.loads((whole / "manifest.json").read_text())
    assert manifest["engine"] == "transformers"
    assert manifest["dtype"] == ("bfloat16" if torch.cuda.is_available() else "float32")
    assert manifest["wave_seeds"] == [42, 43]
    assert manifest["settings"] == SETTINGS.given()
    assert manifest["files"]["five"]["equal_texts"] == 0
    assert set(manifest["prompts_sha256"]) == {"five", "three"}
    assert len(manifest["chat_template_sha256"]) == len(manifest["model_sha256"]) == 64
    assert manifest["engine_version"] == transformers.__version__
    assert {"device", "machine", "cpus", "threads", "variables"} == set(manifest["hardware"])
    assert 0 < manifest["seconds"] < 600


def test_a_second_run_gives_the_same_bytes(
    tiny_model: Path, benchmarks: dict[str, Path], whole: Path, tmp_path: Path
) -> None:
    sample_answers(tiny_model, benchmarks, SETTINGS, tmp_path / "samples", tmp_path / "work")
    assert_same_folder(whole, tmp_path / "samples")


# --- interruption ----------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [1, 4, 6])  # the last one between two benchmarks
def test_an_interrupted_run_ends_like_a_whole_one(
    tiny_model: Path,
    benchmarks: dict[str, Path],
    whole: Path,
    tmp_path: Path,
    interrupted: Callable[[int], Path],
    monkeypatch: pytest.MonkeyPatch,
    calls: int,
) -> None:
    work = interrupted(calls)
    chunks = len(plan_chunks({"five": [1] * 5, "three": [1] * 3}, SETTINGS))
    stop_after(monkeypatch, chunks - calls)  # not one more: what is done is not drawn again
    sample_answers(tiny_model, benchmarks, SETTINGS, tmp_path / "samples", work)
    assert_same_folder(whole, tmp_path / "samples")


@pytest.mark.parametrize("recorded", [{"seconds": 100.0}, {}])
def test_the_seconds_are_those_of_all_parts_and_open_where_one_has_none(
    tiny_model: Path,
    benchmarks: dict[str, Path],
    tmp_path: Path,
    interrupted: Callable[[int], Path],
    recorded: dict[str, float],
) -> None:
    work = interrupted(3)
    head, *lines = (work / "five.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        del row["seconds"]
        row |= recorded
    (work / "five.jsonl").write_text("\n".join([head, *map(json.dumps, rows)]) + "\n")
    sample_answers(tiny_model, benchmarks, SETTINGS, tmp_path / "samples", work)
    seconds = json.loads((tmp_path / "samples" / "manifest.json").read_text())["seconds"]
    if recorded:
        assert 100 * len(rows) < seconds < 100 * len(rows) + 100
    else:
        assert seconds is None


def test_a_torn_line_costs_its_chunk_alone(
    tiny_model: Path,
    benchmarks: dict[str, Path],
    whole: Path,
    tmp_path: Path,
    interrupted: Callable[[int], Path],
) -> None:
    work = interrupted(3)
    content = (work / "five.jsonl").read_bytes()
    (work / "five.jsonl").write_bytes(content[:-20])
    with pytest.warns(UserWarning, match="torn last line dropped"):
        sample_answers(tiny_model, benchmarks, SETTINGS, tmp_path / "samples", work)
    assert_same_folder(whole, tmp_path / "samples")


def test_a_killed_process_can_be_continued(
    tiny_model: Path, benchmarks: dict[str, Path], whole: Path, tmp_path: Path
) -> None:
    script = f"""
import os, signal
from pathlib import Path
import torch
torch.set_num_threads(1)
from grpo_replay.evaluation import sample
from grpo_replay.evaluation.sample_files import WorkFile
append = WorkFile.append
def killed(self, samples):
    append(self, samples)
    if len(self.rows) >= 32:
        os.kill(os.getpid(), signal.SIGKILL)
WorkFile.append = killed
settings = sample.SamplingSettings(**{dataclasses.asdict(SETTINGS)!r})
benchmarks = {{name: Path(path) for name, path in { ({k: str(v) for k, v in benchmarks.items()})!r}.items()}}
sample.sample_answers(Path({str(tiny_model)!r}), benchmarks, settings,
                      Path({str(tmp_path / "samples")!r}), Path({str(tmp_path / "work")!r}))
"""  # noqa: E501
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == -9
    assert not (tmp_path / "samples").exists()
    assert len((tmp_path / "work" / "five.jsonl").read_text().splitlines()) == 1 + 32
    sample_answers(tiny_model, benchmarks, SETTINGS, tmp_path / "samples", tmp_path / "work")
    assert_same_folder(whole, tmp_path / "samples")


@pytest.mark.parametrize("changed", ["model", "sampler"])
def test_chunks_of_another_model_or_sampler_are_not_taken_over(
    changed: str,
    tiny_model: Path,
    other_model: Path,
    benchmarks: dict[str, Path],
    tmp_path: Path,
    interrupted: Callable[[int], Path],
) -> None:
    model = other_model if changed == "model" else tiny_model
    version = SETTINGS.sampler_version + (changed == "sampler")
    settings = dataclasses.replace(SETTINGS, sampler_version=version)
    work = interrupted(3)
    with pytest.warns(UserWarning, match="made with another model, prompt or setting"):
        sample_answers(model, benchmarks, settings, tmp_path / "samples", work)
    sample_answers(model, benchmarks, settings, tmp_path / "fresh", tmp_path / "work2")
    assert_same_folder(tmp_path / "fresh", tmp_path / "samples")


def test_a_damaged_line_is_an_error(
    tiny_model: Path,
    benchmarks: dict[str, Path],
    tmp_path: Path,
    interrupted: Callable[[int], Path],
) -> None:
    work = interrupted(3)
    lines = (work / "five.jsonl").read_text().splitlines(keepends=True)
    (work / "five.jsonl").write_text("".join([*lines[:2], "{damaged\n", *lines[3:]]))
    with pytest.raises(DataError, match="five.jsonl, line 3: not valid JSON.*remove the file"):
        sample_answers(tiny_model, benchmarks, SETTINGS, tmp_path / "samples", work)


# --- what is finished ------------------------------------------------------------------------


def files_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and time of each file of samples."""
    return {f.name: (f.read_bytes(), f.stat().st_mtime_ns) for f in folder.glob("*.parquet")}


def as_snakemake_does(folder: Path) -> None:
    """Outputs are removed before the job that makes them."""
    for path in folder.iterdir():
        if path.is_symlink() or path.is_file():
            path.unlink()


def count_starts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The prompts of each call of the real engine, in a list that grows."""
    calls: list[int] = []
    generate = TransformersEngine.generate

    def counted(self: TransformersEngine, prompts: list, n: int, seed: int) -> list:
        calls.append(len(prompts) * n)
        return generate(self, prompts, n, seed)

    monkeypatch.setattr(TransformersEngine, "generate", counted)
    return calls


def test_a_further_benchmark_draws_its_own_answers_and_nothing_else(
    tiny_model: Path,
    benchmarks: dict[str, Path],
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Interrupted in the middle as well; the result is that of a run that draws all of them."""
    samples, work = tmp_path / "samples", tmp_path / "work"
    first = {"three": benchmarks["three"]}
    alone = dataclasses.replace(SETTINGS, k={"three": 4})
    sample_answers(tiny_model, first, alone, samples, work)
    before = files_of(samples)
    for calls in (4, None):
        as_snakemake_does(samples)
        with monkeypatch.context() as patch:
            drawn = count_starts(patch)
            if calls is not None:
                stop_after(patch, calls)
                with pytest.raises(KeyboardInterrupt):
                    sample_answers(tiny_model, benchmarks, SETTINGS, samples, work)
            else:
                sample_answers(tiny_model, benchmarks, SETTINGS, samples, work)
    assert drawn == [16, 8]  # the last two of six chunks
    assert files_of(samples)["three.parquet"] == before["three.parquet"]
    assert_same_folder(whole, samples)


@pytest.mark.parametrize("first", [8, 4, 16])
def test_another_k_draws_what_is_missing(
    tiny_model: Path,
    benchmarks: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: int,
) -> None:
    """Whole waves give the bytes of a run that draws all of them at once."""
    five, samples = {"five": benchmarks["five"]}, tmp_path / "samples"
    settings = {k: dataclasses.replace(SETTINGS, k={"five": k}) for k in (first, 12)}
    sample_answers(tiny_model, five, settings[first], samples, tmp_path / "work")
    before = pq.read_table(samples / "five.parquet").to_pylist()
    drawn = count_starts(monkeypatch)
    as_snakemake_does(samples)
    sample_answers(tiny_model, five, settings[12], samples, tmp_path / "work")
    assert sum(drawn) == 5 * max(0, 12 - first)
    after = pq.read_table(samples / "five.parquet").to_pylist()
    kept = min(first, 12)
    assert [row for row in after if row["sample_id"] < kept] == [
        row for row in before if row["sample_id"] < kept
    ]
    assert len(after) == 5 * 12 and len({row["text"] for row in after}) == len(after)
    if first == 8:
        sample_answers(tiny_model, five, settings[12], tmp_path / "fresh", tmp_path / "work")
        fresh = (tmp_path / "fresh" / "five.parquet").read_bytes()
        assert (samples / "five.parquet").read_bytes() == fresh


def test_fewer_answers_and_then_more_are_those_of_before(
    tiny_model: Path, benchmarks: dict[str, Path], whole: Path, tmp_path: Path
) -> None:
    """The seeds of what was cut off are free again."""
    for k in (16, 8, 16):
        settings = dataclasses.replace(SETTINGS, k={"five": k, "three": 4})
        sample_answers(tiny_model, benchmarks, settings, tmp_path / "samples", tmp_path / "work")
    assert_same_folder(whole, tmp_path / "samples")


def test_nothing_missing_starts_no_engine(
    tiny_model: Path,
    benchmarks: dict[str, Path],
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = shutil.copytree(whole, tmp_path / "samples", symlinks=True)
    before = files_of(samples)
    monkeypatch.setattr("grpo_replay.evaluation.sample.open_engine", None)
    as_snakemake_does(samples)
    sample_answers(tiny_model, benchmarks, SETTINGS, samples, tmp_path / "work")
    assert files_of(samples) == before
    assert_same_folder(whole, samples)


@pytest.mark.parametrize("change", ["model", "setting", "problem", "bytes"])
def test_what_does_not_belong_any_more_is_drawn_again(
    change: str,
    tiny_model: Path,
    other_model: Path,
    benchmarks: dict[str, Path],
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of it, but one benchmark's problems and one file's bytes are that benchmark's own."""
    samples = shutil.copytree(whole, tmp_path / "samples", symlinks=True)
    paths, settings = dict(benchmarks), SETTINGS
    if change == "setting":
        settings = dataclasses.replace(SETTINGS, temperature=0.7)
    if change == "problem":
        paths["three"] = tmp_path / "three.jsonl"
        rows = read_problems(benchmarks["three"])
        rows[0]["problem"] += " Please."
        write_problems(paths["three"], rows)
    if change == "bytes":
        (samples / "three.parquet").resolve().write_bytes(b"damaged")
    model = other_model if change == "model" else tiny_model
    drawn = count_starts(monkeypatch)
    sample_answers(model, paths, settings, samples, tmp_path / "work")
    everything = 5 * 16 + 3 * 4
    assert sum(drawn) == (3 * 4 if change in ("problem", "bytes") else everything)
    fresh = tmp_path / "fresh"
    sample_answers(model, paths, settings, fresh, tmp_path / "work")
    assert_same_folder(fresh, samples)


def test_another_version_of_the_engine_keeps_what_is_finished_and_adds_nothing_to_it(
    tiny_model: Path,
    benchmarks: dict[str, Path],
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = shutil.copytree(whole, tmp_path / "samples", symlinks=True)
    before = files_of(samples)
    monkeypatch.setattr(transformers, "__version__", "99")
    drawn = count_starts(monkeypatch)
    more = dataclasses.replace(SETTINGS, k={"five": 16, "three": 8})
    sample_answers(tiny_model, benchmarks, more, samples, tmp_path / "work")
    assert sum(drawn) == 3 * 8
    assert files_of(samples)["five.parquet"] == before["five.parquet"]
    files = json.loads((samples / "manifest.json").read_text())["files"]
    assert files["five"]["engine"]["engine_version"] != "99"
    assert files["three"]["engine"]["engine_version"] == "99"


# --- chunks ----------------------------------------------------------------------------------


def test_chunks_for_which_there_are_no_seeds_are_refused() -> None:
    settings = dataclasses.replace(SETTINGS, batch=2**30, k={"a": 24})
    with pytest.raises(ConfigError, match="evaluation_batch: 1073741824 seeds a chunk"):
        plan_chunks({"a": [1]}, settings)


@pytest.mark.parametrize("batch", [1, 16, 20, 4096])
def test_chunks_cover_everything_once_and_share_no_seed(batch: int) -> None:
    settings = dataclasses.replace(SETTINGS, batch=batch, k={"a": 16, "b": 12, "c": 4})
    chunks = plan_chunks({"a": [5, 3] * 250, "b": [1] * 30, "c": [1] * 33}, settings)
    keys = [(c.benchmark, p, s) for c in chunks for p in c.problems for s in c.sample_ids]
    assert len(keys) == len(set(keys)) == 500 * 16 + 30 * 12 + 33 * 4
    assert all((c.wave_seed == 43) == (c.sample_ids.start == 8) for c in chunks)
    seeds = [c.seed + i for c in chunks for i in range(len(c.problems) * len(c.sample_ids))]
    assert len(seeds) == len(set(seeds))
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_what_is_finished_gets_no_chunk_and_its_seeds_to_nobody() -> None:
    settings = dataclasses.replace(SETTINGS, k={"a": 16, "b": 12})
    lengths = {"a": [5, 3] * 250, "b": [1] * 30}
    whole = plan_chunks(lengths, settings)
    old = [chunk for chunk in whole if chunk.benchmark == "a" and chunk.wave_seed == 42]
    seeds = [[chunk.sample_ids.start, chunk.seed] for chunk in old]
    finished = {"a": Finished(Path("a.parquet"), {"k": 8, "seeds": seeds})}
    assert plan_chunks(lengths, settings, finished) == [c for c in whole if c not in old]
    # A benchmark that was finished before this one was thought of has taken all of its seeds.
    other = [[chunk.sample_ids.start, chunk.seed] for chunk in whole if chunk.benchmark == "a"]
    finished = {"b": Finished(Path("b.parquet"), {"k": 12, "seeds": other})}
    again = plan_chunks(lengths, settings, finished)
    assert len(again) == len(other) and not {c.seed for c in again} & {s for _, s in other}


def test_neighbouring_first_seeds_share_no_stream() -> None:
    """A repetition "with the next seed" must not measure the same answers again."""
    settings = dataclasses.replace(SETTINGS, k={"a": 64, "b": 8})
    streams = [
        {
            (chunk.benchmark, chunk.problems, chunk.seed)
            for chunk in plan_chunks(
                {"a": [5, 3] * 20, "b": [1] * 30},
                dataclasses.replace(settings, first_wave_seed=first),
            )
        }
        for first in range(41, 50)
    ]
    assert len(set.union(*streams)) == sum(map(len, streams))


def test_neighbouring_first_seeds_share_no_answers(
    whole: Path, tiny_model: Path, benchmarks: dict[str, Path], tmp_path: Path
) -> None:
    settings = dataclasses.replace(SETTINGS, first_wave_seed=43)
    sample_answers(tiny_model, benchmarks, settings, tmp_path / "samples", tmp_path / "work")
    texts = [
        {(row["problem_id"], row["text"]) for row in pq.read_table(path).to_pylist()}
        for path in (whole / "five.parquet", tmp_path / "samples" / "five.parquet")
    ]
    assert not texts[0] & texts[1]


def test_equal_texts_within_a_problem_are_counted(tmp_path: Path) -> None:
    rows = [
        {"problem_id": problem, "sample_id": sample, "wave_seed": 42, "text": text, "n_tokens": 1,
         "finish_reason": "stop"}
        for problem, texts in (("p1", "aaba"), ("p2", "abcd"))
        for sample, text in enumerate(texts)
    ]  # fmt: skip
    assert write_samples(tmp_path / "a.parquet", "a", ["p1", "p2"], 4, rows) == 2


def test_a_problem_with_other_than_k_samples_is_named(tmp_path: Path) -> None:
    rows = [{"problem_id": "p1", "sample_id": sample} for sample in (0, 1, 1, 5)]
    message = r"problem 'p1': found 4 .* k = 4 .*missing \[2, 3\]; doubled \[1\]; beyond k \[5\]"
    with pytest.raises(DataError, match=message):
        write_samples(tmp_path / "a.parquet", "a", ["p1"], 4, rows)


# --- the engine ------------------------------------------------------------------------------


def test_greedy_decoding_equals_generate(tiny_model: Path, benchmarks: dict[str, Path]) -> None:
    """Left padding, positions and cache are right: with top-k 1 it does what transformers does."""
    folder = open_folder(tiny_model)
    prompts = folder.render(DEFAULT_TASK.messages(p) for p in read_problems(benchmarks["five"]))
    assert len(set(map(len, prompts))) > 1
    engine = TransformersEngine(dataclasses.replace(SETTINGS, top_k=1, max_tokens=24), folder)
    answers = engine.generate(prompts, 2, seed=0)
    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    for number, prompt in enumerate(prompts):
        ids = torch.tensor([prompt])
        expected = model.generate(ids, do_sample=False, max_new_tokens=24)[0, len(prompt) :]
        for answer in answers[2 * number : 2 * number + 2]:
            assert answer.token_ids == expected.tolist()


@pytest.mark.parametrize("spread", [0.1, 4.0])  # nearly uniform, and peaked
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 0.8), (0, 0.999), (5, 1.0), (50, 0.7), (0, 1.0)])
def test_the_nucleus_is_that_of_transformers(spread: float, top_k: int, top_p: float) -> None:
    scores = spread * torch.randn(8, 5000, generator=torch.Generator().manual_seed(0))
    warpers = LogitsProcessorList([TemperatureLogitsWarper(0.6)])
    if top_k:
        warpers.append(TopKLogitsWarper(top_k))
    warpers.append(TopPLogitsWarper(top_p))
    expected = warpers(None, scores).softmax(-1)
    found = Nucleus(0.6, top_k, top_p)(None, scores).softmax(-1)
    assert torch.equal(found > 0, expected > 0)
    assert torch.allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 0.8), (5, 1.0)])
def test_draws_follow_the_filtered_distribution(tiny_model: Path, top_k: int, top_p: float) -> None:
    """No default of the model's own gets in: the first token has the distribution asked for."""
    folder = open_folder(tiny_model)
    settings = dataclasses.replace(SETTINGS, top_k=top_k, top_p=top_p, max_tokens=1)
    prompt, rows = [5, 6, 7], 8_000
    engine = TransformersEngine(settings, folder)
    logits = engine.model(torch.tensor([prompt])).logits[:, -1].detach()
    warpers = LogitsProcessorList([TemperatureLogitsWarper(settings.temperature)])
    if top_k:
        warpers.append(TopKLogitsWarper(top_k))
    warpers.append(TopPLogitsWarper(top_p))
    expected = warpers(None, logits).softmax(-1)[0]
    drawn = [answer.token_ids[0] for answer in engine.generate([prompt], rows, seed=0)]
    found = torch.tensor(drawn).bincount(minlength=len(expected)) / rows
    assert not found[expected == 0].any()
    # Six standard errors of each frequency: a false alarm once in a million runs.
    error = (expected * (1 - expected) / rows).sqrt()
    assert ((found - expected).abs() <= 6 * error + 1 / rows).all()


def test_an_end_token_of_the_generation_config_alone_stops(
    tiny_model: Path, benchmarks: dict[str, Path], tmp_path: Path
) -> None:
    model = shutil.copytree(tiny_model, tmp_path / "model")
    path = model / "generation_config.json"
    more = list(range(100, 200))  # a random model meets one of them soon
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": more}))
    ends = open_folder(model).end_ids
    turn_end = open_folder(tiny_model).end_ids
    assert ends == sorted({*turn_end, *more})  # the other sources still count
    sample_answers(model, benchmarks, SETTINGS, tmp_path / "samples", tmp_path / "work")
    rows = pq.read_table(tmp_path / "samples" / "five.parquet").to_pylist()
    stopped = [row for row in rows if row["finish_reason"] == "stop"]
    assert len(stopped) > len(rows) / 2
    assert min(row["n_tokens"] for row in stopped) < 6


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_weights_that_are_not_finite_are_refused_by_name(
    engine: str, tiny_model: Path, benchmarks: dict[str, Path], tmp_path: Path
) -> None:
    """Before vLLM is imported: this needs none."""
    model = shutil.copytree(tiny_model, tmp_path / "model")
    weights = load_file(model / "model.safetensors")
    weights["model.norm.weight"][-1] = float("inf")
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    settings = dataclasses.replace(SETTINGS, engine=engine)
    with pytest.raises(ModelError, match=r"model\.safetensors: model\.norm\.weight is not finite"):
        open_engine(settings, open_folder(model), 3)


def test_a_diverged_model_is_named(tiny_model: Path, tmp_path: Path) -> None:
    folder = open_folder(tiny_model)
    engine = TransformersEngine(SETTINGS, folder)
    with torch.no_grad():
        engine.model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(ModelError, match="not finite.*diverged"):
        engine.generate([[5, 6, 7]], 2, seed=0)


# --- models and engines that are not there ---------------------------------------------------


def test_unusable_models_are_refused_before_sampling(
    tiny_model: Path, benchmarks: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match="no model there"):
        sample_answers(tmp_path / "none", benchmarks, SETTINGS, tmp_path / "s", tmp_path / "w")
    long = dataclasses.replace(SETTINGS, max_tokens=1000)
    with pytest.raises(ModelError, match="more than the model's 1024 positions; lower"):
        sample_answers(tiny_model, benchmarks, long, tmp_path / "s", tmp_path / "w")
    bare = shutil.copytree(tiny_model, tmp_path / "bare")
    (bare / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match="no chat template"):
        sample_answers(bare, benchmarks, SETTINGS, tmp_path / "s", tmp_path / "w")


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed here")
def test_vllm_that_is_not_installed_is_never_replaced(
    tiny_model: Path, benchmarks: dict[str, Path], tmp_path: Path
) -> None:
    settings = dataclasses.replace(SETTINGS, engine="vllm")
    with pytest.raises(ModelError, match="evaluation.engine: 'vllm' is not installed"):
        sample_answers(tiny_model, benchmarks, settings, tmp_path / "s", tmp_path / "w")
