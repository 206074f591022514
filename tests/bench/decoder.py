# SPDX-License-Identifier: Apache-2.0
"""A decoder shaped like Qwen3-0.6B with random weights, for the workloads of this folder."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Past = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Shape:
    """Sizes of the network: widths, layers, query and key heads, vocabulary."""

    hidden: int
    layers: int
    heads: int
    key_heads: int
    head: int
    forward: int
    vocabulary: int
    dtype: torch.dtype


FULL = Shape(1024, 28, 16, 8, 128, 3072, 151936, torch.bfloat16)
SMALL = Shape(128, 4, 4, 2, 32, 384, 1024, torch.float32)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """Root-mean-square normalisation, computed in float32."""
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Layer(nn.Module):
    """Attention with grouped keys, then a gated feed-forward network."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = s = shape
        self.q = nn.Linear(s.hidden, s.heads * s.head, bias=False)
        self.k = nn.Linear(s.hidden, s.key_heads * s.head, bias=False)
        self.v = nn.Linear(s.hidden, s.key_heads * s.head, bias=False)
        self.o = nn.Linear(s.heads * s.head, s.hidden, bias=False)
        self.gate = nn.Linear(s.hidden, s.forward, bias=False)
        self.up = nn.Linear(s.hidden, s.forward, bias=False)
        self.down = nn.Linear(s.forward, s.hidden, bias=False)
        self.norm1, self.norm2 = nn.Parameter(torch.ones(s.hidden)), nn.Parameter(torch.ones(s.hidden))
        self.q_norm, self.k_norm = nn.Parameter(torch.ones(s.head)), nn.Parameter(torch.ones(s.head))

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x: (batch, tokens, hidden). Returns that shape, and keys and values with the past ones in front."""
        s, (batch, tokens, _) = self.shape, x.shape
        h = rms_norm(x, self.norm1)
        q = rms_norm(self.q(h).view(batch, tokens, s.heads, s.head), self.q_norm).transpose(1, 2)
        k = rms_norm(self.k(h).view(batch, tokens, s.key_heads, s.head), self.k_norm).transpose(1, 2)
        v = self.v(h).view(batch, tokens, s.key_heads, s.head).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        repeat = s.heads // s.key_heads
        a = F.scaled_dot_product_attention(
            q, k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1), is_causal=past is None
        )
        x = x + self.o(a.transpose(1, 2).reshape(batch, tokens, s.heads * s.head))
        h = rms_norm(x, self.norm2)
        return x + self.down(F.silu(self.gate(h)) * self.up(h)), (k, v)


class Decoder(nn.Module):
    """Token numbers in, logits and the cache of keys and values out."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.hidden))

    def forward(self, ids: Tensor, cos: Tensor, sin: Tensor, past: Past | None = None) -> tuple[Tensor, Past]:
        """ids: (batch, tokens). Logits: (batch, tokens, vocabulary)."""
        x, cache = self.embedding(ids), []
        for i, layer in enumerate(self.layers):
            x, kv = layer(x, cos, sin, past[i] if past else None)
            cache.append(kv)
        return F.linear(rms_norm(x, self.norm), self.embedding.weight), cache


def make_decoder(shape: Shape) -> Decoder:
    """Weights on the CPU, the same ones every time."""
    with torch.device("meta"):
        net = Decoder(shape)
    net = net.to(shape.dtype).to_empty(device="cpu")
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in net.parameters():
            if p.dim() > 1:
                p.copy_(torch.randn(p.shape, generator=generator) * 0.02)
            else:
                p.fill_(1)
    return net
