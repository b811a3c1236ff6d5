"""The server of the demo: `charge_card` charges again on every call, and says so with a new id.

`python -m fencekit.demo.server`. Each charge is also appended to the file that `FENCEKIT_EFFECTS`
names, so that the truth is counted outside the answers.
"""

from __future__ import annotations

from fencekit.probe.specimen import main

if __name__ == "__main__":
    main("fires")
