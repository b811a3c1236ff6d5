"""The published test vectors, recomputed here and by a verifier in another language (promise 8)."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest
import rfc8785

from fencekit.core.canonical import parse_json
from fencekit.core.certificate import FIELDS, EffectCert
from tests.conftest import need

FOLDER = Path(__file__).parents[2] / "fixtures" / "certificates"
VECTORS = {path.stem: parse_json(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))}
# The reference package stops at 2^53; these hold what the extension is for.
EXTENDED = {"big-integers", "tricky-texts"}


def run_verifier(*paths: Path) -> tuple[int, dict[str, str]]:
    """Run the Node verifier; return its exit code and what it said of each file."""
    ran = subprocess.run(
        [need("node"), str(FOLDER / "verify.mjs"), *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == ""
    said = (line.split(": ", 1) for line in ran.stdout.splitlines())
    return ran.returncode, {Path(path).stem: word for word, path in said}


def test_there_are_enough_of_them():
    assert len(VECTORS) >= 15


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_recomputes(name):
    vector = VECTORS[name]
    cert = EffectCert.from_json(vector["certificate"])
    assert cert.canonical().hex() == vector["canonical_hex"]
    assert cert.canonical().decode() == vector["canonical"]
    assert cert.hash == vector["hash"]
    assert hashlib.sha256(bytes.fromhex(vector["canonical_hex"])).hexdigest() == vector["hash"]
    assert cert.verify()
    assert vector.keys() == {"about", "certificate", "canonical", "canonical_hex", "hash"}


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_is_what_the_reference_package_writes(name):
    fields = {field: VECTORS[name]["certificate"][field] for field in FIELDS}
    if name in EXTENDED:
        with pytest.raises(rfc8785.IntegerDomainError):
            rfc8785.dumps(fields)
    else:
        assert rfc8785.dumps(fields).hex() == VECTORS[name]["canonical_hex"]


def test_the_chain_is_one():
    first, second, third = (VECTORS[f"chain-{n}"]["certificate"] for n in (1, 2, 3))
    assert first["parent"] is None
    assert second["parent"] == first["hash"]
    assert third["parent"] == second["hash"]


def test_the_keys_do_sort_differently_in_utf8_and_utf16():
    args = VECTORS["utf16-key-order"]["certificate"]["args"]
    assert sorted(args) != sorted(args, key=lambda key: key.encode("utf-16-be"))


def test_the_table_lists_every_vector():
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (.+) \|$", (FOLDER / "README.md").read_text(), re.M)
    assert dict(rows) == {name: vector["about"] for name, vector in VECTORS.items()}


@pytest.mark.node
def test_another_language_verifies_each_vector():
    code, said = run_verifier(*FOLDER.glob("*.json"))
    assert said == dict.fromkeys(VECTORS, "ok")
    assert code == 0


def test_the_other_verifier_depends_on_nothing():
    source = (FOLDER / "verify.mjs").read_text()
    imported = re.findall(r'\bfrom "([^"]+)"|\bimport\("|\brequire\(', source)
    assert sorted(imported) == ["node:crypto", "node:fs"]
    assert len(source.splitlines()) <= 40


@pytest.mark.node
def test_another_language_verifies_what_is_made_today(tmp_path):
    """A bare certificate as `to_json` gives it, written by an ordinary JSON writer."""
    vector = VECTORS["big-integers"]["certificate"]
    cert = EffectCert.from_json(vector)
    path = tmp_path / "bare.json"
    path.write_text(json.dumps(cert.to_json(), indent=1))
    assert run_verifier(path) == (0, {"bare": "ok"})


CHANGES = {
    "intent": "charge:order-124",
    "parent": "0" * 64,
    "domain": "order:124",
    "seq": 5,
    "tool": "charge_card2",
    "args": {"order": "123", "amount": 4999, "currency": "eur"},
    "result": {"id": "ch_1", "status": "succeeded", "more": None},
    "vector_clock": {"agent-a": 3},
    "read_set": [],
    "agent": "agent-b",
    "hash": "0" * 64,
}


@pytest.mark.node
def test_a_changed_field_fails_in_both_languages(tmp_path):
    plain = VECTORS["plain"]["certificate"]
    assert CHANGES.keys() == plain.keys()
    paths = []
    for name, value in CHANGES.items():
        changed = {**plain, name: value}
        assert not EffectCert.from_json(changed).verify()
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(changed))
    code, said = run_verifier(*paths)
    assert said == dict.fromkeys(CHANGES, "wrong hash")
    assert code == 1


@pytest.mark.node
def test_the_other_verifier_sees_what_a_careless_one_would_not(tmp_path):
    """One digit of an integer that doubles cannot tell apart, a member too many, forged bytes."""
    text = (FOLDER / "big-integers.json").read_text()
    bare = json.dumps(VECTORS["big-integers"]["certificate"])
    plain = VECTORS["plain"]
    cases = {
        "digit": (bare.replace("1152921504606846977", "1152921504606846978"), "wrong hash"),
        "member": (json.dumps({**plain["certificate"], "note": 1}), "wrong fields"),
        "missing": (json.dumps({"certificate": {"hash": "0" * 64}}), "wrong fields"),
        "bytes": (text.replace('"canonical_hex": "7b22', '"canonical_hex": "7b23'), "other bytes"),
    }
    for name, (changed, _) in cases.items():
        assert changed not in (text, bare)
        (tmp_path / f"{name}.json").write_text(changed)
    code, said = run_verifier(*(tmp_path / f"{name}.json" for name in cases))
    assert said == {name: word for name, (_, word) in cases.items()}
    assert code == 1
