"""Every way and counter on servers whose truth is known, counted outside every answer.

No PROVEN where the effect ran once, no ONE EFFECT where it ran more than once.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fencekit.probe import specimen
from fencekit.probe.answers import Lens
from fencekit.probe.fire import Shot
from fencekit.probe.judge import judge
from fencekit.probe.model import Evidence, Setting, Verdict, Way
from fencekit.probe.observer import CommandCounter, Observer, ToolCounter
from fencekit.probe.sink import Sink
from fencekit.probe.ways import Rig
from fencekit.wire.client import Target

ODD = Path(__file__).parents[2] / "fixtures" / "servers" / "odd.py"
P, ONE, INC, NO = Verdict.PROVEN, Verdict.ONE_EFFECT, Verdict.INCONCLUSIVE, Verdict.NO_SURFACE
LENS = Lens(echoed=frozenset({"o-1"}))

# What each counter alone must say of each specimen in each way: answers, observer, sink.
EXPECTED = {
    ("fires", Way.TWINS): (P, P, P),
    ("fires", Way.RETRY): (P, P, P),
    ("fires", Way.LOST_ANSWER): (NO, P, P),
    ("fires", Way.RESTART): (P, P, P),
    ("races", Way.TWINS): (P, P, P),
    ("races", Way.RETRY): (INC, ONE, ONE),
    ("races", Way.LOST_ANSWER): (NO, P, P),
    ("races", Way.RESTART): (P, P, P),
    ("forgets", Way.TWINS): (INC, ONE, ONE),
    ("forgets", Way.RETRY): (INC, ONE, ONE),
    ("forgets", Way.LOST_ANSWER): (NO, P, P),
    ("forgets", Way.RESTART): (P, P, P),
    ("echoes", Way.TWINS): (INC, P, P),
    ("echoes", Way.RETRY): (INC, P, P),
    ("echoes", Way.LOST_ANSWER): (NO, P, P),
    ("echoes", Way.RESTART): (INC, P, P),
    ("keeps", Way.TWINS): (INC, ONE, ONE),
    ("keeps", Way.RETRY): (INC, ONE, ONE),
    ("keeps", Way.LOST_ANSWER): (NO, ONE, ONE),
    ("keeps", Way.RESTART): (INC, ONE, ONE),
}


def perform(mode: str, way: Way, folder: Path, **options) -> tuple[Evidence, int]:
    """Ask a specimen twice with every counter watching; return the evidence and the truth."""
    effects = folder / "effects"
    with Sink() as sink:
        env = {specimen.EFFECTS_ENV: str(effects), specimen.SINK_ENV: sink.url}
        command = (sys.executable, "-m", "fencekit.probe.specimen", mode)
        rig = Rig(
            shot=Shot("charge_card", {"order": "o-1"}, timeout=30.0),
            connect=Target(command=command, env=env, timeout=30.0).connect,
            setting=Setting(stdio=True),
            calls=6,
            observer=Observer(ToolCounter("list_charges", "$.length")),
            sink=sink,
            **options,
        )
        evidence, _ = rig.perform(way)
    return evidence, effects.read_text().count("\n")


def alone(evidence: Evidence) -> tuple[Evidence, Evidence, Evidence]:
    silent = tuple(replace(call, result={}) for call in evidence.calls)
    return (
        replace(evidence, observation=None, sink=None),
        replace(evidence, sink=None, calls=silent),
        replace(evidence, observation=None, calls=silent),
    )


def never_more_than_the_truth(verdict: Verdict, truth: int) -> None:
    if verdict is Verdict.PROVEN:
        assert truth > 1
    if verdict is Verdict.ONE_EFFECT:
        assert truth == 1


@pytest.mark.parametrize(("mode", "way"), EXPECTED)
def test_each_counter_says_what_the_truth_allows(mode, way, tmp_path):
    evidence, truth = perform(mode, way, tmp_path)

    got = tuple(judge(one, LENS).verdict for one in alone(evidence))
    together = judge(evidence, LENS)

    # A lost answer and one that came are one success: nothing to compare, unless two succeeded.
    expected = EXPECTED[mode, way]
    assert got[1:] == expected[1:]
    assert got[0] in ((INC, NO) if way is Way.LOST_ANSWER else expected[:1])
    for verdict in (*got, together.verdict):
        never_more_than_the_truth(verdict, truth)
    assert together.verdict is expected[2]
    assert together.disagreements == ()


def test_a_process_of_its_own_for_each_twin_proves_nothing_by_answers(tmp_path):
    """Six processes that remember in memory charge six times; only the outside counters can say."""
    evidence, truth = perform("forgets", Way.TWINS, tmp_path, connections=6)

    answers, observer, sink = (judge(one, LENS).verdict for one in alone(evidence))

    assert truth == 6
    assert (answers, observer, sink) == (INC, P, P)


def test_processes_that_share_a_memory_on_disk_run_once(tmp_path):
    evidence, truth = perform("keeps", Way.TWINS, tmp_path, connections=6)

    assert truth == 1
    assert [judge(one, LENS).verdict for one in alone(evidence)] == [INC, ONE, ONE]


def test_a_world_in_memory_is_not_taken_for_a_count_of_one(tmp_path):
    """Each of six processes counts one charge of its own; a fresh one sees none of them."""
    command = (sys.executable, "-m", "fencekit.probe.specimen", "fires")
    rig = Rig(
        shot=Shot("charge_card", {"order": "o-1"}),
        connect=Target(command=command).connect,
        setting=Setting(stdio=True),
        calls=6,
        connections=6,
        observer=Observer(ToolCounter("list_charges", "$.length")),
    )
    evidence, _ = rig.perform(Way.TWINS)

    judgement = judge(evidence, LENS)

    assert judgement.verdict is INC
    assert any("saw nothing" in note for note in judgement.notes)


# mode: what the answers alone must say, and what they say with a count beside them
ODD_ONES = {
    "clock": (INC, INC),
    "clock-text": (INC, INC),
    "random-reader": (INC, INC),
    "volatile": (INC, P),
    "text-ids": (P, P),
    "total": (P, P),
    "says-so": (INC, ONE),
    "counts": (INC, ONE),
    "prose": (INC, ONE),
    "delivery": (INC, ONE),
    "shuffles": (INC, ONE),
    "refuses": (NO, ONE),
}


@pytest.mark.parametrize("mode", ODD_ONES)
@pytest.mark.parametrize("way", [Way.TWINS, Way.RETRY])
def test_answers_that_mislead(mode, way, tmp_path):
    effects = tmp_path / "effects"
    effects.touch()
    rig = Rig(
        shot=Shot("act", {"key": "k"}),
        connect=Target(
            command=(sys.executable, str(ODD), mode), env={"EFFECTS": str(effects)}
        ).connect,
        setting=Setting(reads_only=mode in ("clock", "clock-text", "random-reader")),
        calls=5,
        observer=Observer(CommandCounter(f"wc -l < '{effects}'")),
    )
    evidence, _ = rig.perform(way)
    truth = effects.read_text().count("\n")

    answers = judge(replace(evidence, observation=None), LENS)
    counted = judge(evidence, LENS)

    assert (answers.verdict, counted.verdict) == ODD_ONES[mode]
    never_more_than_the_truth(answers.verdict, truth)
    never_more_than_the_truth(counted.verdict, truth)


# Charges and never answers; `count` tells the truth. FORGET=1 dedupes nothing.
MUTE = """
import json, os, sys
path = os.environ["EFFECTS"]
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    else:
        if os.environ["RUNS"] == "always" or not os.path.getsize(path):
            if os.environ["RUNS"] != "never": open(path, "a").write("x\\n")
        if os.environ["RUNS"] == "always": continue
        marker = path + ".asked"
        if not os.path.exists(marker):
            open(marker, "w").close()
            continue
        r = {"content": []}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""


@pytest.mark.parametrize(
    ("runs", "ran", "verdict"), [("once", True, ONE), ("never", False, NO), ("always", True, P)]
)
def test_an_answer_cut_by_the_clock_counts_only_what_the_observer_saw(runs, ran, verdict, tmp_path):
    """The first answer never comes; that it ran is shown by the observer, or it is not shown."""
    effects = tmp_path / "effects"
    effects.touch()
    env = {"EFFECTS": str(effects), "RUNS": runs}
    rig = Rig(
        shot=Shot("act", {}, timeout=1.0),
        connect=Target(command=(sys.executable, "-c", MUTE), env=env).connect,
        setting=Setting(),
        observer=Observer(CommandCounter(f"wc -l < '{effects}'")),
        cut_after=0.3,
    )
    evidence, _ = rig.perform(Way.LOST_ANSWER)

    assert evidence.cut is not None
    assert evidence.cut.first_ran is ran
    assert judge(evidence, LENS).verdict is verdict


# Runs once for each order, but its own HTTP client sends again after a failure.
RETRIES = """
import json, os, sys, urllib.request
done = {}
def post(order):
    headers = {"Idempotency-Key": order} if os.environ.get("KEYED") else {}
    for _ in range(3):
        try:
            request = urllib.request.Request(os.environ["API"] + "/charges", b"{}", headers)
            return json.load(urllib.request.urlopen(request, timeout=0.5))
        except OSError: pass
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    else:
        order = m["params"]["arguments"]["order"]
        if order not in done: done[order] = post(order)
        r = {"content": [{"type": "text", "text": json.dumps(done[order])}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""


@pytest.mark.parametrize("fault", ["", "after-effect-503", "hang", "close"])
@pytest.mark.parametrize("keyed", ["", "1"])
def test_a_hidden_retry_shows_at_the_sink_when_the_first_write_fails(fault, keyed):
    """Without the injected failure this server looks perfect."""
    with Sink(fault=fault) as sink:
        target = Target(
            command=(sys.executable, "-c", RETRIES), env={"API": sink.url, "KEYED": keyed}
        )
        rig = Rig(Shot("act", {"order": "o-1"}), target.connect, Setting(), calls=4, sink=sink)
        evidence, _ = rig.perform(Way.TWINS)
    words = judge(evidence, LENS).words

    if not fault:
        assert words == "ONE EFFECT"
    elif keyed:
        assert words == "ONE EFFECT if the API honours Idempotency-Key"
    else:
        assert words == "PROVEN DOUBLE-FIRE"
