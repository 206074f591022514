# SPDX-License-Identifier: Apache-2.0
"""T5: an encoder and a decoder with relative positions; beams, and tokens guessed ahead by another model."""

from typing import Any

import pytest
import torch
from agreement import agrees
from transformers import T5Config, T5ForConditionalGeneration

VOCABULARY = 211


def network(device: str, seed: int = 5, layers: int = 2, **options: Any) -> T5ForConditionalGeneration:
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=VOCABULARY,
        d_model=48,
        d_kv=12,
        d_ff=64,
        num_layers=layers,
        num_heads=4,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=16,
        decoder_start_token_id=0,
        **options,
    )
    model = T5ForConditionalGeneration(config).eval()
    # Else each token would be most like the one before it.
    model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCABULARY, config.d_model))
    return model.to(device)


def text(device: str, batch: int = 2) -> dict[str, torch.Tensor]:
    ids = torch.randint(2, VOCABULARY, (batch, 11), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[-1, 8:] = 0
    return {"input_ids": ids.to(device), "attention_mask": mask.to(device)}


def generate(model: T5ForConditionalGeneration, inputs: dict[str, torch.Tensor], **options: Any) -> Any:
    tokens = model.generate(**inputs, max_new_tokens=14, **options)
    assert len(tokens[0].unique()) > 3, "the tokens would hide a difference"
    return tokens


BEAMS: dict[str, dict[str, Any]] = {
    "beams": {"num_beams": 4},
    "all beams": {"num_beams": 4, "num_return_sequences": 4, "length_penalty": 0.5, "early_stopping": True},
    "beams without repetition": {"num_beams": 3, "no_repeat_ngram_size": 2, "repetition_penalty": 1.2},
    "sampled beams": {"num_beams": 3, "do_sample": True, "top_k": 30},
}


@pytest.mark.parametrize("way", BEAMS)
def test_beam_search(way: str) -> None:
    def search(device: str) -> Any:
        model = network(device)
        torch.manual_seed(3)
        return generate(model, text(device), **{"do_sample": False, **BEAMS[way]})

    agrees(search)


# One that is mostly wrong, and one that is always right.
ASSISTANTS = [(6, 1), (5, 2)]


@pytest.mark.parametrize(("seed", "layers"), ASSISTANTS)
def test_an_assistant_guesses_ahead(seed: int, layers: int) -> None:
    """The tokens are those that the model finds without it."""

    def guess(device: str) -> list[Any]:
        model, inputs = network(device), text(device, batch=1)
        assistant = network(device, seed=seed, layers=layers)
        assisted = generate(model, inputs, do_sample=False, assistant_model=assistant)
        assert assisted.equal(generate(model, inputs, do_sample=False))
        torch.manual_seed(3)
        return [assisted, generate(model, inputs, do_sample=True, assistant_model=assistant)]

    agrees(guess)


def test_tokens_guessed_from_the_text() -> None:
    def guess(device: str) -> Any:
        return generate(network(device), text(device, 1), do_sample=False, prompt_lookup_num_tokens=3)

    agrees(guess)


def test_trains_like_the_cpu() -> None:
    def train(device: str) -> list[Any]:
        model = network(device, dropout_rate=0.1).train()
        optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
        inputs = text(device)
        torch.manual_seed(7)
        losses = []
        for _ in range(5):
            loss = model(**inputs, labels=inputs["input_ids"].flip(1)).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return [*losses, *model.parameters()]

    agrees(train, times=1)
