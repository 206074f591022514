# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts (Qwen3-MoE): a router that sends each token to two of four experts."""

from typing import Any

import pytest
import torch
from agreement import DEVICE, agrees
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

VOCABULARY = 211
IMPLEMENTATIONS = ["eager", "batched_mm"]


def network(device: str, implementation: str) -> Qwen3MoeForCausalLM:
    torch.manual_seed(5)
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        moe_intermediate_size=32,
        num_experts=4,
        num_experts_per_tok=2,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=64,
        initializer_range=0.4,
    )
    model = Qwen3MoeForCausalLM(config).eval().to(device)
    model.set_experts_implementation(implementation)
    return model


def prompts(device: str) -> torch.Tensor:
    return torch.randint(1, VOCABULARY, (2, 7), generator=torch.Generator().manual_seed(1)).to(device)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_generates_the_cpus_tokens(implementation: str) -> None:
    def generate(device: str) -> torch.Tensor:
        model = network(device, implementation)
        tokens: torch.Tensor = model.generate(
            prompts(device), max_new_tokens=10, do_sample=False, pad_token_id=0
        )
        assert len(tokens[0, 7:].unique()) > 3, "the tokens would hide a difference"
        return tokens

    agrees(generate)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_forward_and_backward(implementation: str) -> None:
    def compute(device: str) -> list[Any]:
        model, ids = network(device, implementation), prompts(device)
        outputs = model(input_ids=ids, labels=ids)
        return [outputs.loss, outputs.logits, *torch.autograd.grad(outputs.loss, list(model.parameters()))]

    agrees(compute)


def test_experts_in_groups_need_a_kernel_that_the_cpu_lacks() -> None:
    """Transformers counts tokens with histc() of integers on every device but the CPU, where it has none."""
    with pytest.raises(NotImplementedError, match="histogram_cpu"):
        network(DEVICE, "grouped_mm")(input_ids=prompts(DEVICE)).logits.cpu()
