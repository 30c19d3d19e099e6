"""A transformer of plain numpy with a paged KV cache: what the examples prefill and decode with.

Its weights are random, from a seed. It computes in float64, so that the same cache gives the same
tokens everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LAYERS, HEADS, HEAD_SIZE, VOCABULARY = 4, 4, 16, 256
WIDTH = HEADS * HEAD_SIZE
BLOCK_TOKENS = 8

Floats = NDArray[np.float64]


class PagedCache:
    """Keys and values in blocks, which requests own by number: [block][layer][2][token][head]."""

    def __init__(self, blocks: int) -> None:
        shape = (blocks, LAYERS, 2, BLOCK_TOKENS, HEADS, HEAD_SIZE)
        self.pages = np.zeros(shape)
        self.free = list(range(blocks))

    @property
    def block_bytes(self) -> int:
        return int(self.pages[0].nbytes)

    def allocate(self, tokens: int) -> list[int]:
        """The block table of a request: any free blocks, here the last ones."""
        return [self.free.pop() for _ in range(blocks_of(tokens))]

    def release(self, table: list[int]) -> None:
        self.free += table

    def put(self, table: list[int], layer: int, token: int, keys: Floats, values: Floats) -> None:
        page = self.pages[table[token // BLOCK_TOKENS], layer]
        page[0, token % BLOCK_TOKENS], page[1, token % BLOCK_TOKENS] = keys, values

    def get(self, table: list[int], layer: int, tokens: int) -> tuple[Floats, Floats]:
        """Of the first tokens, each [token][head][HEAD_SIZE]."""
        pages = self.pages[table, layer]
        keys, values = (pages[:, part].reshape(-1, HEADS, HEAD_SIZE)[:tokens] for part in (0, 1))
        return keys, values


class Transformer:
    def __init__(self, seed: int = 1) -> None:
        draw = np.random.default_rng(seed).normal
        self.embedding, self.output = draw(size=(2, VOCABULARY, WIDTH))
        self.attention = draw(size=(LAYERS, 4, WIDTH, WIDTH)) / np.sqrt(WIDTH)
        self.mlp = draw(size=(LAYERS, 2, WIDTH, WIDTH)) / np.sqrt(WIDTH)

    def step(self, cache: PagedCache, table: list[int], position: int, token: int) -> int:
        """Puts a token's keys and values into the cache; returns the most likely next token."""
        x = self.embedding[token] + np.sin(position / 10.0 ** np.linspace(0, 4, WIDTH))
        for layer in range(LAYERS):
            q, k, v = (norm(x) @ self.attention[layer, i] for i in range(3))
            cache.put(table, layer, position, heads(k), heads(v))
            keys, values = cache.get(table, layer, position + 1)
            scores = np.einsum("hd,thd->ht", heads(q), keys) / np.sqrt(HEAD_SIZE)
            seen = np.einsum("ht,thd->hd", softmax(scores), values).reshape(WIDTH)
            x = x + seen @ self.attention[layer, 3]
            x = x + np.tanh(norm(x) @ self.mlp[layer, 0]) @ self.mlp[layer, 1]
        outcome: Floats = self.output @ norm(x)
        return int(outcome.argmax())

    def prefill(self, cache: PagedCache, table: list[int], prompt: list[int]) -> int:
        """All of the prompt; returns the first new token."""
        return [self.step(cache, table, at, token) for at, token in enumerate(prompt)][-1]

    def decode(
        self, cache: PagedCache, table: list[int], length: int, first: int, count: int
    ) -> list[int]:
        """`count` tokens after a prompt of that length, whose first new token is known."""
        tokens = [first]
        while len(tokens) < count:
            tokens.append(self.step(cache, table, length + len(tokens) - 1, tokens[-1]))
        return tokens


def blocks_of(tokens: int) -> int:
    return -(-tokens // BLOCK_TOKENS)


def heads(vector: Floats) -> Floats:
    return vector.reshape(HEADS, HEAD_SIZE)


def norm(x: Floats) -> Floats:
    result: Floats = x / np.sqrt(np.mean(x * x))
    return result


def softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return result


def in_one_process(prompt: list[int], count: int) -> list[int]:
    """What prefill and decode in two processes must give, too."""
    model, cache = Transformer(), PagedCache(blocks=64)
    table = cache.allocate(len(prompt) + count)
    return model.decode(cache, table, len(prompt), model.prefill(cache, table, prompt), count)
