"""The paper's prompt, for every model, in training and in evaluation (section "Training")."""

SYSTEM_PROMPT = "You are a helpful assistant."
USER_PROMPT = (
    "Problem: {question}\n\n"
    "Please reason step by step, and put your final answer within \\boxed{{}}."
)


def chat_messages(question: str) -> list[dict[str, str]]:
    """Return the system and user turns for one problem, to be rendered by a chat template."""
    return [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": USER_PROMPT.format(question=question)},
    ]
