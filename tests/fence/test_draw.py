"""Ids of commands and tickets: no two processes and no two threads draw the same one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from fencekit.fence.draw import new_id


def test_an_id_is_128_bits_in_hex():
    ids = [new_id() for _ in range(1000)]
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in ids)
    assert len(set(ids)) == 1000


def test_threads_never_draw_the_same_id():
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: [new_id() for _ in range(2000)], range(8)))
    ids = [one for some in drawn for one in some]
    assert len(set(ids)) == len(ids)


def test_a_forked_child_draws_ids_of_its_own():
    new_id()  # so that the parent has drawn more than it gave
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, " ".join(new_id() for _ in range(100)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        theirs = pipe.read().split()
    os.waitpid(child, 0)
    ours = [new_id() for _ in range(300)]
    assert len(theirs) == 100
    assert not set(theirs) & set(ours)
