"""Canonical JSON against the `rfc8785` package: the same bytes, how many times faster.

Both write the same certificates in the same process, by turns, so that the machine's load weighs on
both alike; each number is the best of the rounds. Run: python benchmarks/canonical.py
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import rfc8785

from fencekit.core.canonical import canonical_bytes
from fencekit.core.certificate import EffectCert, ReadSetEntry
from fencekit.core.clock import VectorClock

ROUNDS = 15
TARGET = 20  # times as fast on the certificate of about 600 bytes


def certificate(result: Any) -> dict[str, Any]:
    cert = EffectCert.make(
        intent="charge:order-10293",
        parent="3b1f0c6d5a8e49f7b2c4d6e8f0a1b3c5d7e9f1a3b5c7d9e1f3a5b7c9d1e3f5a7",
        domain="order:10293",
        seq=7,
        tool="charge_card",
        args={"order": "10293", "amount": 4999, "currency": "EUR", "customer": "cus_9s6XKzkNRiz8"},
        result=result,
        vector_clock=VectorClock({"agent-a": 3, "agent-b": 1}),
        read_set=(ReadSetEntry("order:10293", 6),),
        agent="agent-a",
    )
    fields = cert.to_json()
    del fields["hash"]
    return fields


# What most servers answer: JSON inside a text, its quotes escaped once more.
ANSWER = (
    '{"id":"ch_3PqRsTUvWxYz","status":"succeeded","amount":4999,"currency":"EUR",'
    '"receipt_url":"https://pay.example/receipts/10293"}'
)
PROSE = "Charged 49.99 EUR to the card ending in 4242 for order 10293; a mail confirms it. " * 2
SAMPLES = {
    "a tool's answer, JSON in a text": certificate(
        {"content": [{"type": "text", "text": ANSWER}], "isError": False}
    ),
    "a tool's answer in prose": certificate(
        {"content": [{"type": "text", "text": PROSE}], "isError": False}
    ),
    "many small fields": certificate(
        {
            "id": "ch_3PqRsTUvWxYz",
            "status": "succeeded",
            "fee": 1.74,
            "lines": [{"sku": "A-1", "n": 2}, {"sku": "B-7", "n": 1}, {"sku": "C-9", "n": 4}],
            "metadata": {"channel": "web", "note": None, "captured": True},
            "receipt_url": "https://pay.example/receipts/10293",
        }
    ),
    "the exact path (a float that prints as an integer)": certificate(
        {"total": 50.0, "text": PROSE}
    ),
}


def microseconds(write: Callable[[Any], bytes], value: Any, calls: int) -> float:
    return timeit.timeit(lambda: write(value), number=calls) / calls * 1e6


def main() -> None:
    for name, value in SAMPLES.items():
        expected = rfc8785.dumps(value)
        assert canonical_bytes(value) == expected, name
        theirs = ours = float("inf")
        for _ in range(ROUNDS):
            theirs = min(theirs, microseconds(rfc8785.dumps, value, 400))
            ours = min(ours, microseconds(canonical_bytes, value, 4000))
        print(
            f"{name}: {len(expected)} bytes, rfc8785 {theirs:.1f} us, "
            f"fencekit {ours:.2f} us, {theirs / ours:.1f} times"
        )
    print(f"target: {TARGET} times on a certificate of about 600 bytes, the same bytes")


if __name__ == "__main__":
    main()
