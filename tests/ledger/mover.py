"""Moves a ledger until it is killed: `mover FROM TO`; the drain takes no time."""

from __future__ import annotations

import contextlib
import sys

from fencekit.ledger.copying import copy
from fencekit.ledger.open import open_ledger


def main(source: str, target: str) -> None:
    with (
        contextlib.closing(open_ledger(source)) as old,
        contextlib.closing(open_ledger(target)) as new,
    ):
        print(copy(old, new, 0, lambda text: None).records, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
