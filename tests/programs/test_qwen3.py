# SPDX-License-Identifier: Apache-2.0
"""A decoder of today (Qwen3: grouped queries, rotary positions, normed heads): generates and trains."""

from typing import Any

import pytest
import torch
from agreement import DEVICE, agrees
from transformers import Qwen3Config, Qwen3ForCausalLM

VOCABULARY = 211


def network(device: str, **options: Any) -> Qwen3ForCausalLM:
    """The same random weights each time; as large as makes greedy tokens differ from each other."""
    torch.manual_seed(5)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=128,
        initializer_range=0.4,
        **options,
    )
    return Qwen3ForCausalLM(config).eval().to(device)


def prompts(device: str) -> dict[str, torch.Tensor]:
    """Two prompts, of which the first is shorter and padded at its left."""
    ids = torch.randint(1, VOCABULARY, (2, 7), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    return {"input_ids": ids.to(device), "attention_mask": mask.to(device)}


WAYS: dict[str, dict[str, Any]] = {
    "with cache": {"use_cache": True},
    "without cache": {"use_cache": False},
    "static cache": {"cache_implementation": "static"},
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "sampling": {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 1.5},
    "penalties": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
}


@pytest.mark.parametrize("way", WAYS)
def test_generates_the_cpus_tokens(way: str) -> None:
    def generate(device: str) -> torch.Tensor:
        model = network(device)
        torch.manual_seed(2)
        tokens: torch.Tensor = model.generate(
            **prompts(device), max_new_tokens=12, pad_token_id=0, **{"do_sample": False, **WAYS[way]}
        )
        assert len(tokens[0, 7:].unique()) > 3, "the tokens would hide a difference"
        return tokens

    agrees(generate)


def test_the_caches_change_no_token() -> None:
    model, inputs = network(DEVICE), prompts(DEVICE)
    with_cache, without, static = (
        model.generate(**inputs, max_new_tokens=12, pad_token_id=0, do_sample=False, **WAYS[way])
        for way in ("with cache", "without cache", "static cache")
    )
    assert with_cache.equal(without)
    assert with_cache.equal(static)


def test_a_sliding_window_generates_the_cpus_tokens() -> None:
    window = {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}
    agrees(
        lambda device: network(device, **window).generate(
            **prompts(device), max_new_tokens=12, pad_token_id=0, do_sample=False
        )
    )


@pytest.mark.parametrize("how", ["plain", "checkpointed", "dropout"])
def test_trains_like_the_cpu(how: str) -> None:
    def train(device: str) -> list[Any]:
        model = network(device, attention_dropout=0.2 if how == "dropout" else 0.0).train()
        if how == "checkpointed":
            model.activation_checkpointing_enable()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
        inputs = prompts(device)
        torch.manual_seed(7)  # the same dropout: making the network drew on the CPU
        losses = []
        for _ in range(10):
            loss = model(**inputs, labels=inputs["input_ids"]).loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
        curve = torch.stack(losses)
        assert curve[-1] < curve[0]
        return [curve, *model.parameters()]

    agrees(train, times=1)
