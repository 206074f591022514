# SPDX-License-Identifier: Apache-2.0
"""GPT-J: positions rotated in a part of each head, attention in float32 whatever the weights are."""

import pytest
import torch
from agreement import agrees
from transformers import GPTJConfig, GPTJForCausalLM

VOCABULARY = 211
DTYPES = [torch.float32, torch.bfloat16]


def network(device: str, dtype: torch.dtype) -> GPTJForCausalLM:
    torch.manual_seed(5)
    config = GPTJConfig(
        vocab_size=VOCABULARY,
        n_positions=64,
        n_embd=64,
        n_layer=2,
        n_head=4,
        rotary_dim=8,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=None,
    )
    return GPTJForCausalLM(config).eval().to(device, dtype)


def prompts(device: str) -> dict[str, torch.Tensor]:
    ids = torch.randint(1, VOCABULARY, (2, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, :4] = 0
    return {"input_ids": ids.to(device), "attention_mask": mask.to(device)}


@pytest.mark.parametrize("dtype", DTYPES)
def test_forward_and_backward(dtype: torch.dtype) -> None:
    def compute(device: str) -> list[torch.Tensor]:
        model, inputs = network(device, dtype), prompts(device)
        outputs = model(**inputs, labels=inputs["input_ids"], output_hidden_states=True)
        gradients = torch.autograd.grad(outputs.loss, list(model.parameters()))
        return [outputs.loss, outputs.logits, *outputs.hidden_states, *gradients]

    agrees(compute)


@pytest.mark.parametrize("dtype", DTYPES)
def test_generates_the_cpus_tokens(dtype: torch.dtype) -> None:
    def generate(device: str) -> torch.Tensor:
        model = network(device, dtype)
        tokens: torch.Tensor = model.generate(
            **prompts(device), max_new_tokens=12, pad_token_id=0, do_sample=False
        )
        assert len(tokens[0, 9:].unique()) > 3, "the tokens would hide a difference"
        return tokens

    agrees(generate)
