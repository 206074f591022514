# SPDX-License-Identifier: Apache-2.0
"""What the other process does with tensors that it is sent; it must be importable there."""

from multiprocessing.connection import Connection
from typing import Any

import torch


def double_all(tensors: list[torch.Tensor]) -> None:
    """Writes into what it was given."""
    for tensor in tensors:
        tensor.mul_(2)
    torch.flagos.synchronize()


def echo(connection: Connection) -> None:
    """Sends back what it receives, until None."""
    while (thing := connection.recv()) is not None:
        connection.send(thing)
        del thing


def describe(connection: Connection) -> None:
    """Of each tensor: its device, its values, and whether a write through the first shows in the last."""
    while (tensors := connection.recv()) is not None:
        tensors[0].fill_(7)
        connection.send([(str(t.device), list(t.shape), list(t.stride()), t.tolist()) for t in tensors])
        del tensors


def produce(connection: Connection) -> None:
    """Sends tensors of its own, frees what it has, and ends when it is told to."""
    tensor = torch.arange(1000, device="flagos", dtype=torch.float64)
    connection.send(tensor)
    connection.recv()
    del tensor
    # Whatever is allocated next must not be the memory that was sent.
    kept = [torch.full((1000,), -1.0, device="flagos", dtype=torch.float64) for _ in range(50)]
    torch.flagos.synchronize()
    connection.send("freed")
    connection.recv()
    del kept


def descend(model: torch.nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> None:
    """One step of gradient descent on shared parameters."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()
    torch.flagos.synchronize()


def total(tensor: torch.Tensor) -> float:
    result: float = tensor.sum().item()
    return result


def fails(connection: Connection, *_: Any) -> None:
    """Says what receiving raises."""
    try:
        connection.recv()
    except RuntimeError as error:
        connection.send(str(error))
