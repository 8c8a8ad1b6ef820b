# SPDX-License-Identifier: Apache-2.0
"""How evenly the common key spreads the hosts of `gateway-v4` over 16 queues, with no code of Evenhand's
(docs/explanation/hashing.md).

It prints

         1 hosts:  1 queues busy, busiest / mean 16
         2 hosts:  2 queues busy, busiest / mean 8
         4 hosts:  7 queues busy, busiest / mean 4
         8 hosts: 15 queues busy, busiest / mean 2
        16 hosts: 16 queues busy, busiest / mean 1.062
        32 hosts: 16 queues busy, busiest / mean 1.016
        64 hosts: 16 queues busy, busiest / mean 1.004
     65534 hosts: 16 queues busy, busiest / mean 1

as `evenhand predict gateway-v4 --direction forward --series` does.
"""

from collections import Counter

KEY = 0x6D5A56DA255B0EC24167253D43A38FB0D0CA2BCBAE7B30B477CB2DA38030F20C6A42B73BBEAC01FA
QUEUES = 16


def contribution(octets: bytes, first_bit: int) -> int:
    value = int.from_bytes(octets, "big")
    result = 0
    for bit in range(8 * len(octets)):
        if value >> (8 * len(octets) - 1 - bit) & 1:
            result ^= KEY >> (320 - 32 - first_bit - bit) & 0xFFFFFFFF
    return result


def histogram(block: int, hosts: int, first_bit: int) -> Counter[int]:
    addresses = (bytes([198, block, *divmod(host, 256)]) for host in range(1, hosts + 1))
    return Counter(contribution(address, first_bit) % 128 for address in addresses)


for hosts in (1, 2, 4, 8, 16, 32, 64, 65534):
    sources, destinations = histogram(18, hosts, first_bit=0), histogram(19, hosts, first_bit=32)
    load = Counter[int]()
    for a, of_a in sources.items():
        for b, of_b in destinations.items():
            load[(a ^ b) % QUEUES] += of_a * of_b
    busiest_to_mean = max(load.values()) * QUEUES / hosts**2
    print(f"{hosts:6} hosts: {len(load):2} queues busy, busiest / mean {busiest_to_mean:.4g}")
