"""One process of a vLLM test, which allows one engine a process: reads JSON, writes JSON.

python tests/vllm_cpu/draw.py '{"task": ..., "model": ..., ...}'
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from grpo_replay.evaluation.engines import VllmEngine
from grpo_replay.evaluation.sample import sample_answers
from grpo_replay.evaluation.settings import SamplingSettings
from grpo_replay.models.folder import open_folder
from grpo_replay.tasks.any_task import DEFAULT_TASK
from grpo_replay.tasks.problems import read_problems

SETTINGS = SamplingSettings(
    sampler_version=2,
    engine="vllm",
    temperature=0.6,
    top_p=0.8,
    top_k=0,
    samples_per_wave=8,
    first_wave_seed=42,
    batch=16,  # two problems a chunk
    k={"five": 16, "three": 8},
    max_tokens=24,
)


def sample(model: str, benchmarks: dict[str, str], folder: str) -> None:
    """Sample as a cell does, into `folder`/samples."""
    paths = {name: Path(path) for name, path in benchmarks.items()}
    sample_answers(Path(model), paths, SETTINGS, Path(folder, "samples"), Path(folder, "work"))


def log_probabilities(model: str, benchmarks: dict[str, str], folder: str) -> None:
    """Write prompts, drawn token ids and vLLM's log-probability of each, of 8 answers a problem."""
    model_folder = open_folder(Path(model))
    problems = read_problems(Path(benchmarks["five"]))
    prompts = model_folder.render(DEFAULT_TASK.messages(problem) for problem in problems)
    engine = VllmEngine(SETTINGS, model_folder, max(map(len, prompts)))
    requests = [engine._request(8, 8 * number) for number in range(len(prompts))]
    for request in requests:
        request.logprobs = 0
    outputs = engine.llm.generate(
        [{"prompt_token_ids": prompt} for prompt in prompts], requests, use_tqdm=False
    )
    answers = [
        {
            "prompt": prompt,
            "drawn": list(answer.token_ids),
            "logprobs": [
                step[token].logprob
                for token, step in zip(answer.token_ids, answer.logprobs, strict=True)
            ],
        }
        for prompt, output in zip(prompts, outputs, strict=True)
        for answer in output.outputs
    ]
    Path(folder, "answers.json").write_text(json.dumps(answers), encoding="utf-8")


def first_tokens(model: str, benchmarks: dict[str, str], folder: str) -> None:
    """Write the first token of many answers to one prompt."""
    settings = dataclasses.replace(SETTINGS, max_tokens=1)
    engine = VllmEngine(settings, open_folder(Path(model)), 3)
    drawn = [answer.token_ids[0] for answer in engine.generate([[5, 6, 7]] * 250, 16, seed=0)]
    Path(folder, "first.json").write_text(json.dumps(drawn), encoding="utf-8")


def main() -> None:
    """Do the task of the command line."""
    arguments: dict[str, Any] = json.loads(sys.argv[1])
    tasks = {task.__name__: task for task in (sample, log_probabilities, first_tokens)}
    tasks[arguments.pop("task")](**arguments)


if __name__ == "__main__":
    main()
