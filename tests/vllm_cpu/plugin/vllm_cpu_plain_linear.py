"""Keep the parameters of vLLM's linear layers on a CPU, so that new weights can be loaded."""

import torch


def register() -> None:
    """Called by vLLM in each of its processes."""
    from vllm.model_executor.layers import utils
    from vllm.platforms import current_platform

    def keep(layer: torch.nn.Module, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    if current_platform.is_cpu():
        utils.dispatch_cpu_unquantized_gemm = keep
