# SPDX-License-Identifier: Apache-2.0
"""The addresses and ports of the first three frames of `gateway-v4` with seed 7, with no code of Evenhand's
(docs/explanation/randomness.md).

It prints

    198.18.244.95 8389 198.19.192.9 4211
    198.18.104.46 12107 198.19.203.151 47080
    198.18.1.143 53127 198.19.2.42 41714

as `evenhand plan frames gateway-v4 --seed 7` does. For IPv6, the same words are mapped to other ranges.
"""


def philox4x32(counter: tuple[int, ...], key: tuple[int, int]) -> tuple[int, ...]:
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return c0, c1, c2, c3


def draw(field: int, first: int, count: int, k: int, seed: int, direction: int) -> int:
    attempt = 0
    while True:
        words = philox4x32((k & 0xFFFFFFFF, k >> 32, direction, attempt), (seed & 0xFFFFFFFF, seed >> 32))
        product = words[field] * count
        if product & 0xFFFFFFFF >= 2**32 % count:
            return first + (product >> 32)
        attempt += 1


for k in range(3):
    source, destination = (draw(field, 1, 65534, k, seed=7, direction=0) for field in (0, 1))
    ports = draw(2, 1024, 64512, k, 7, 0), draw(3, 1, 49151, k, 7, 0)
    print(
        f"198.18.{source >> 8}.{source & 255}",
        ports[0],
        f"198.19.{destination >> 8}.{destination & 255}",
        ports[1],
    )
