"""JSON values to try the core on: ordinary ones, and every kind that a fast path may get wrong."""

from __future__ import annotations

from hypothesis import strategies as st

SAFE = 2**53 - 1

safe_ints = st.integers(-SAFE, SAFE)
big_ints = st.integers(-(2**200), 2**200)
# Doubles by their bits reach the ends of the range; the ranges are where printers disagree.
floats = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(1e-8, 1e-3)
    | st.floats(1e14, 1e22)
    | safe_ints.map(float)
)
# Few letters, so that keys collide in their beginnings: plain, escaped, high BMP, astral.
letters = st.sampled_from('ab"\\/\n\x00\x1f\x7f\x80é€\u2028\ue000\ufb33\uffff\U00010000😀')
texts = st.text(letters, max_size=6) | st.text(max_size=12)


def json_values(leaves, max_leaves=25):
    """Return JSON values built of the given leaves."""
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=max_leaves,
    )


reference_values = json_values(st.none() | st.booleans() | safe_ints | floats | texts)
values = json_values(st.none() | st.booleans() | safe_ints | big_ints | floats | texts)
objects = st.dictionaries(texts, values, max_size=4)
