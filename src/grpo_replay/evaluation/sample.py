"""Samples answers to all benchmarks of a cell, in fixed chunks that an interrupted run can rely on.

A chunk is a block of problems times one wave of samples. Its random stream is derived from its key
alone, so a run that stopped and continued ends with the same bytes as one that never stopped; only
whole chunks are taken over. The answers to a benchmark that an earlier run has finished stay, and
only what is missing is drawn.
"""

import hashlib
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_replay.errors import ConfigError
from grpo_replay.evaluation.engines import Engine, engine_facts, hardware_facts, open_engine
from grpo_replay.evaluation.finished import Finished, find_finished, keep_samples
from grpo_replay.evaluation.sample_files import WorkFile, problems_digest
from grpo_replay.evaluation.settings import SamplingSettings
from grpo_replay.files import digest, folder_digest, write_json
from grpo_replay.models.folder import ModelFolder, open_folder
from grpo_replay.results.kept import Record, link
from grpo_replay.results.layout import MANIFEST
from grpo_replay.tasks.any_task import task_of
from grpo_replay.tasks.problems import read_problems

SEED_LIMIT = 2**31  # what every engine accepts as a seed


@dataclass(frozen=True)
class Chunk:
    """A block of problems times one wave: what is drawn, kept and skipped as a whole.

    No two chunks share a value among `seed`, ..., `seed` + (samples in the chunk) - 1.
    """

    benchmark: str
    wave_seed: int
    sample_ids: range
    problems: tuple[int, ...]  # positions in the benchmark
    seed: int


def plan_chunks(
    lengths: dict[str, list[int]],
    settings: SamplingSettings,
    finished: Mapping[str, Finished] | None = None,
) -> list[Chunk]:
    """Return the chunks for benchmarks whose prompts have these lengths, benchmark by benchmark.

    Prompts of like length share a chunk, since a batch is padded to its longest. Wave w of a
    benchmark holds the sample ids from w * samples_per_wave on. Its streams come from
    `first_wave_seed` and w together, so that evaluations with neighbouring seeds share no answers;
    `first_wave_seed` + w is its name in the samples. What is finished of a benchmark gets no chunk,
    and its seeds are not used again.
    """
    finished = finished or {}
    spacing = max(settings.batch, settings.samples_per_wave)
    taken = {seed // spacing for own in finished.values() for _, seed in own.seeds}
    chunks = []
    for name, own in lengths.items():
        by_length = sorted(range(len(own)), key=own.__getitem__)
        size = max(1, settings.batch // min(settings.samples_per_wave, settings.k[name]))
        for sample_ids in _waves(settings, name, finished[name].k if name in finished else 0):
            number, offset = divmod(sample_ids.start, settings.samples_per_wave)
            wave = f"{number}+{offset}" if offset else f"{number}"
            for index, block in enumerate(range(0, len(own), size)):
                key = f"{settings.first_wave_seed}/{wave}/{name}/{index}"
                seed = spaced_seed(key, spacing, taken)
                positions = tuple(by_length[block : block + size])
                wave_seed = settings.first_wave_seed + number
                chunks.append(Chunk(name, wave_seed, sample_ids, positions, seed))
    return chunks


def _waves(settings: SamplingSettings, name: str, done: int) -> Iterator[range]:
    """The sample ids of each wave of a benchmark, from the first that is missing on."""
    start, k = done, settings.k[name]
    while start < k:
        stop = (start // settings.samples_per_wave + 1) * settings.samples_per_wave
        yield range(start, min(stop, k))
        start = stop


def spaced_seed(key: str, spacing: int, taken: set[int]) -> int:
    """Return a multiple of `spacing` below 2^31 for a key, and never one that is taken."""
    slots = SEED_LIMIT // spacing
    if len(taken) >= slots:  # the study's check says so before any job
        raise ConfigError(f"evaluation_batch: {spacing} seeds a chunk leave no free ones; lower it")
    slot = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) % slots
    while slot in taken:
        slot = (slot + 1) % slots
    taken.add(slot)
    return slot * spacing


def sample_answers(
    model: Path, benchmarks: dict[str, Path], settings: SamplingSettings, output: Path, work: Path
) -> None:
    """Draw k answers to every problem and write `output`/<benchmark>.parquet and manifest.json.

    Finished answers that belong to this model, these problems and settings stay as they are, bytes
    and time: another benchmark draws its own answers, a larger k those that are missing. The
    manifest's `seconds` are those of drawing, each start of the engine included, over all parts of
    an interrupted run; None where a chunk did not record any.

    Args:
        model: Folder of model and tokenizer.
        benchmarks: Problem files by benchmark name.
        settings: How to draw; the engine is the one named there.
        output: Folder of the samples; a file appears there only when it is complete, as a link into
            `output`/kept/.
        work: Folder of the chunks that are done; removed at the end.

    Raises:
        DataError: on a wrong problem file, or a problem with other than k samples.
        ModelError: on an unusable model, or an engine that is not installed.
    """
    problems = {name: read_problems(path) for name, path in benchmarks.items()}
    folder = open_folder(model)
    prompts = {
        name: folder.render(map(task_of(settings.tasks.get(name)).messages, rows))
        for name, rows in problems.items()
    }
    folder.check_length(prompts, settings.max_tokens, "evaluation_max_tokens")
    manifest = _manifest(folder, problems, prompts, settings)
    made_by = {name: _made_by(manifest, name) for name in problems}
    finished = {
        name: found
        for name in problems
        if (found := find_finished(_file(output, name), made_by[name], settings.k[name]))
    }
    lengths = {name: [len(prompt) for prompt in rows] for name, rows in prompts.items()}
    chunks = plan_chunks(lengths, settings, finished)
    sampler = _Sampler(folder, prompts, settings)
    for name, rows in problems.items():
        k, ids, path = settings.k[name], [row["id"] for row in rows], _file(output, name)
        if (done := finished.get(name)) is None or done.k != k:
            own = [chunk for chunk in chunks if chunk.benchmark == name]
            fingerprint = digest([made_by[name], k, done and done.k])
            drawn = sampler.sample(own, ids, work / f"{name}.jsonl", fingerprint)
            seeds = [[chunk.sample_ids.start, chunk.seed] for chunk in own]
            finished[name] = keep_samples(path, ids, k, made_by[name], drawn, seeds, done)
        link(path, finished[name].record)
    write_json(output / MANIFEST, manifest | _told(finished))
    shutil.rmtree(work, ignore_errors=True)  # not there where nothing was drawn


def _file(output: Path, name: str) -> Path:
    return output / f"{name}.parquet"


def _manifest(
    folder: ModelFolder,
    problems: dict[str, list[dict[str, Any]]],
    prompts: dict[str, list[list[int]]],
    settings: SamplingSettings,
) -> dict[str, Any]:
    """Return all that decides the samples."""
    waves = -(-max(settings.k.values()) // settings.samples_per_wave)
    return {
        **engine_facts(settings.engine),
        "settings": settings.given(),
        "wave_seeds": [settings.first_wave_seed + number for number in range(waves)],
        "model_sha256": folder_digest(folder.path),
        "chat_template_sha256": digest(folder.tokenizer.chat_template),
        "prompts_sha256": {name: digest(rows) for name, rows in prompts.items()},
        "problems_sha256": {name: problems_digest(rows) for name, rows in problems.items()},
        "end_token_ids": folder.end_ids,
    }


def _made_by(manifest: dict[str, Any], name: str) -> Record:
    """Return what of the manifest belongs to the answers to one benchmark: no other's problems, no
    other's k, and not its own, since answers can be added.
    """
    settings = {k: value for k, value in manifest["settings"].items() if k not in ("k", "tasks")}
    settings["task"] = manifest["settings"].get("tasks", {}).get(name)
    common = ("model_sha256", "chat_template_sha256", "end_token_ids")
    own = ("prompts_sha256", "problems_sha256")
    decided_by = {key: manifest[key] for key in common} | {key: manifest[key][name] for key in own}
    engine = ("engine", "engine_version", "torch_version", "dtype")
    return {
        "decided_by": {"settings": settings, **decided_by},
        "engine": {key: manifest[key] for key in engine},
    }


def _told(finished: dict[str, Finished]) -> dict[str, Any]:
    """Return what the manifest tells besides. Hardware is no reason to start anew: a requeued job
    may land on another machine.
    """
    seconds = [done.record["seconds"] for done in finished.values()]
    keys = ("sha256", "equal_texts", "engine")
    return {
        "hardware": hardware_facts(),
        "files": {name: {key: done.record[key] for key in keys} for name, done in finished.items()},
        "seconds": None if None in seconds else sum(seconds),
    }


class _Sampler:
    """Draws the chunks that are missing; the engine starts when the first one is met."""

    def __init__(
        self, folder: ModelFolder, prompts: dict[str, list[list[int]]], settings: SamplingSettings
    ) -> None:
        self.folder = folder
        self.prompts = prompts
        self.settings = settings
        self.engine: Engine | None = None

    def sample(
        self, chunks: list[Chunk], ids: list[str], path: Path, fingerprint: str
    ) -> list[dict[str, Any]]:
        """Return the samples of one benchmark, drawn or found in its work file; `seconds` of each
        is its share of what its chunk took.
        """
        start = time.perf_counter()
        keys = [_keys(chunk, ids) for chunk in chunks]
        done = WorkFile(path, fingerprint, keys)
        missing = [
            (chunk, own) for chunk, own in zip(chunks, keys, strict=True) if not done.has(own)
        ]
        tokens = 0
        for chunk, own in missing:
            began = time.perf_counter()
            drawn = self.draw(chunk)
            share = {"seconds": (time.perf_counter() - began) / len(own)}
            done.append(
                [{**key, **sample, **share} for key, sample in zip(own, drawn, strict=True)]
            )
            tokens += sum(sample["n_tokens"] for sample in drawn)
        seconds = time.perf_counter() - start
        print(
            f"sampled {path.stem}: {len(ids)} problems, {len(done.rows)} answers; "
            f"{len(missing)} of {len(chunks)} chunks drawn now, {tokens} tokens in {seconds:.1f} s",
            file=sys.stderr,
        )
        return list(done.rows.values())

    def draw(self, chunk: Chunk) -> list[dict[str, Any]]:
        """Return text, n_tokens and finish_reason of a chunk's samples, problem by problem."""
        if self.engine is None:
            self.engine = open_engine(self.settings, self.folder, self._longest())
        prompts = [self.prompts[chunk.benchmark][position] for position in chunk.problems]
        answers = self.engine.generate(prompts, len(chunk.sample_ids), chunk.seed)
        texts = self.folder.decode(answer.token_ids for answer in answers)
        return [
            {
                "text": text,
                "n_tokens": len(answer.token_ids),
                "finish_reason": "stop" if answer.finished else "length",
            }
            for answer, text in zip(answers, texts, strict=True)
        ]

    def _longest(self) -> int:
        return max(len(prompt) for rows in self.prompts.values() for prompt in rows)


def _keys(chunk: Chunk, ids: list[str]) -> list[dict[str, Any]]:
    return [
        {"problem_id": ids[position], "sample_id": sample, "wave_seed": chunk.wave_seed}
        for position in chunk.problems
        for sample in chunk.sample_ids
    ]
