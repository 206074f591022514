# SPDX-License-Identifier: Apache-2.0
"""Whisper: speech to tokens; convolutions before an encoder, a decoder with beams or an assistant."""

from typing import Any

import pytest
import torch
from agreement import agrees
from transformers import WhisperConfig, WhisperForConditionalGeneration

START, FIRST_LANGUAGE, TRANSCRIBE, PREVIOUS, NO_TIMESTAMPS, END = 150, 151, 154, 155, 156, 199
FRAMES = 40


def network(device: str, seed: int = 5, layers: int = 2) -> WhisperForConditionalGeneration:
    torch.manual_seed(seed)
    config = WhisperConfig(
        vocab_size=200,
        num_mel_bins=12,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        d_model=48,
        max_source_positions=FRAMES // 2,
        max_target_positions=48,
        decoder_start_token_id=START,
        pad_token_id=END,
        bos_token_id=END,
        eos_token_id=END,
        begin_suppress_tokens=[3, END],
        init_std=0.3,
    )
    model = WhisperForConditionalGeneration(config).eval()
    generation = model.generation_config
    generation.is_multilingual = True
    generation.lang_to_id = {f"<|{name}|>": FIRST_LANGUAGE + i for i, name in enumerate(["en", "de", "fr"])}
    generation.task_to_id = {"transcribe": TRANSCRIBE}
    generation.prev_sot_token_id = PREVIOUS
    generation.no_timestamps_token_id = NO_TIMESTAMPS
    generation.max_initial_timestamp_index = 5
    return model.to(device)


def speech(device: str, batch: int = 2) -> torch.Tensor:
    return torch.randn(batch, 12, FRAMES, generator=torch.Generator().manual_seed(1)).to(device)


def transcribe(model: WhisperForConditionalGeneration, batch: int = 2, **options: Any) -> Any:
    tokens = model.generate(speech(str(model.device), batch), max_new_tokens=16, do_sample=False, **options)
    assert len(tokens[0].unique()) > 3, "the tokens would hide a difference"
    return tokens


def test_beam_search() -> None:
    agrees(lambda device: transcribe(network(device), language="en", task="transcribe", num_beams=4))


def test_the_language_is_found() -> None:
    agrees(lambda device: [network(device).detect_language(speech(device)), transcribe(network(device))])


def test_timestamps() -> None:
    agrees(lambda device: transcribe(network(device), language="de", return_timestamps=True, num_beams=2))


# One that is mostly wrong, and one that is always right.
ASSISTANTS = [(6, 1), (5, 2)]


@pytest.mark.parametrize(("seed", "layers"), ASSISTANTS)
def test_an_assistant_guesses_ahead(seed: int, layers: int) -> None:
    def guess(device: str) -> Any:
        model, assistant = network(device), network(device, seed, layers)
        assisted = transcribe(model, 1, language="en", assistant_model=assistant)
        assert assisted.equal(transcribe(model, 1, language="en"))
        return assisted

    agrees(guess)


def test_gradients() -> None:
    def compute(device: str) -> list[Any]:
        model = network(device)
        labels = torch.arange(12, device=device).view(2, 6)
        loss = model(input_features=speech(device), labels=labels).loss
        return [loss, *torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad])]

    agrees(compute)
