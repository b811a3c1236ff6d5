"""Small documents of every schema that the reports read, built by hand."""

from __future__ import annotations

from typing import Any


def scan_tool(name: str, line: int, **changes: Any) -> dict[str, Any]:
    """A candidate with one write, two hops away."""
    tool: dict[str, Any] = {
        "name": name,
        "declared_name": name,
        "file": "src/tools.py",
        "line": line,
        "language": "python",
        "sdk": "fastmcp",
        "server": "billing",
        "description": f"Does {name}. Use a unique key per request.",
        "parameters": [{"name": "amount"}],
        "annotations": {},
        "handler": {"symbol": name, "file": "src/tools.py", "line": line + 1},
        "reaches_write": True,
        "candidate": True,
        "unresolved": False,
        "declarative": False,
        "money": False,
        "fingerprint": f"fp-{name}",
        "twin_of": None,
        "writes": [
            {
                "file": "src/api.py",
                "line": 4,
                "what": "POST /charges",
                "declarative": False,
                "certain": True,
                "chain": [
                    {"symbol": name, "file": "src/tools.py", "line": line + 1, "certain": True},
                    {"symbol": "send", "file": "src/api.py", "line": 2, "certain": False},
                ],
            }
        ],
        "guards": [{"kind": "fresh-key", "file": "src/api.py", "line": 3, "name": "idem"}],
        "retries": [{"file": "src/api.py", "line": 2, "wraps_write": True}],
        "mechanisms": [
            {"kind": "fresh-key", "file": "src/api.py", "line": 3, "note": "uuid4() per call"}
        ],
    }
    return tool | changes


def scan_document(path: str = "billing") -> dict[str, Any]:
    """Six tools: money, plain, unresolved, declarative, a reader, and a twin."""
    return {
        "schema": "fencekit.scan/1",
        "tool": {"name": "fencekit", "version": "0.1.0"},
        "repository": {"path": path, "commit": "ab" * 20},
        "summary": {},
        "tools": [
            scan_tool("charge_card", 10, money=True),
            scan_tool("send_mail", 20, mechanisms=[], guards=[]),
            scan_tool(
                "create_later", 30, unresolved=True, writes=[], reaches_write=None, handler=None
            ),
            scan_tool("put_name", 40, declarative=True, mechanisms=[]),
            scan_tool("list_all", 50, candidate=False, reaches_write=False, writes=[]),
            scan_tool(
                "charge_card", 10, file="dist.js", twin_of={"file": "src/tools.py", "line": 10}
            ),
        ],
        "unattributed": {
            "writes": [],
            "guards": [{"kind": "dedup-store", "file": "src/dedup.py", "line": 7, "name": "seen"}],
            "retries": [],
        },
        "skipped": [{"path": "node_modules", "reason": "vendored"}],
        "partial": [{"path": "src/broken.py", "ranges": [[3, 9]]}],
        "unknowns": [{"file": "src/x.py", "line": 8, "name": "run", "reason": "three definitions"}],
    }


SOURCES = {
    "src/tools.py": [f"line {n}" for n in range(1, 61)],
    "src/api.py": ["import httpx", "def send(x):", "    idem = uuid4()", "    httpx.post(u, x)"],
}


def probe_way(way: str = "twins", *, proven: bool = True, calls: int = 12) -> dict[str, Any]:
    """One way: every call its own answer, or one executed and the rest replayed."""
    groups = list(range(calls)) if proven else [0] * calls
    return {
        "way": way,
        "verdict": "PROVEN DOUBLE-FIRE" if proven else "ONE EFFECT",
        "verdict_words": "PROVEN DOUBLE-FIRE" if proven else "ONE EFFECT",
        "condition": None,
        "reason": f"$.charge_id: {calls} distinct" if proven else "one write to POST /charges",
        "rests_on": "answers" if proven else "sink",
        "effects": calls if proven else 1,
        "disagreements": [],
        "notes": [],
        "counts": {
            "calls": calls,
            "answered": calls,
            "succeeded": calls,
            "tool_errors": 0,
            "asked_back": 0,
            "rate_limited": 0,
            "transport_failures": 0,
        },
        "marks": None
        if proven
        else {
            "executed_now": 1,
            "replayed_now": calls - 1,
            "replayed_before": 0,
            "refused": 0,
            "oldest_age_s": 0.2,
        },
        "overlap": {
            "spread_ms": 1.5,
            "first_answer_ms": 20.0,
            "last_answer_ms": 60.0,
            "together": calls,
            "parallel": 4.0,
        },
        "cut": None,
        "counters": {
            "answers": {"distinct": len(set(groups)), "executions": len(set(groups))},
            "observer": {
                "source": "tool list_charges",
                "before": 3,
                "after": 3 + len(set(groups)),
                "delta": len(set(groups)),
                "drift": 0,
                "settled": True,
                "fault": None,
            },
            "sink": {
                "target": "POST /charges",
                "writes": len(set(groups)),
                "effects": len(set(groups)),
                "key_name": "idempotency-key",
                "distinct_keys": len(set(groups)),
                "writes_without_key": 0,
                "reads": 0,
                "other_targets": {},
                "overlap": 4,
                "faults_injected": 0,
            },
        },
        "calls": [
            {
                "n": n,
                "connection": 0,
                "outcome": "ok",
                "sent_ms": n * 0.1,
                "answered_ms": 20.0 + n * 3,
                "answer": groups[n],
                "mark": None if proven else ("executed now" if n == 0 else "replayed from now"),
                "detail": None,
            }
            for n in range(calls)
        ],
        "answers": [
            {"n": g, "count": groups.count(g), "calls": [g], "text": f'{{"charge_id": "ch_{g}"}}'}
            for g in sorted(set(groups))
        ],
        "differences": [
            {"path": "$.charge_id", "distinct": calls, "nature": "identifying", "samples": ["ch_0"]}
        ]
        if proven
        else [],
    }


def probe_document(
    *, proven: bool = True, ways: tuple[str, ...] = ("twins",), self_check: bool | None = True
) -> dict[str, Any]:
    """A complete run against one charging tool."""
    made = [probe_way(way, proven=proven) for way in ways]
    return {
        "schema": "fencekit.probe/1",
        "tool_version": "0.1.0",
        "started": "2026-11-30T10:00:00.000Z",
        "ended": "2026-11-30T10:00:02.000Z",
        "elapsed_ms": 2000.0,
        "complete": True,
        "stopped": None,
        "commands": {
            "this": "fencekit probe --tool charge_card --args '{}' -- acme-billing",
            "raw": "fencekit probe --tool charge_card --args '{}' -- acme-billing",
            "fenced": "fencekit probe --tool charge_card -- fencekit wrap -- acme-billing",
        },
        "target": {
            "kind": "stdio",
            "command": ["acme-billing"],
            "url": None,
            "fenced": not proven,
            "name": "acme-billing",
            "version": "1.4.0",
            "protocol": "2025-11-25",
            "era": "handshake",
        },
        "tool": {
            "name": "charge_card",
            "description": "Charges a card.",
            "hints": {"readOnlyHint": False},
            "arguments": {"amount": 5},
            "arguments_sha256": "0" * 64,
        },
        "plan": {
            "ways": list(ways),
            "calls": 12,
            "connections": 1,
            "timeout_s": 60.0,
            "observer": None,
            "sink": None,
            "ignore": [],
            "id_paths": [],
        },
        "control": {"what": "tools/list", "ok": True},
        "self_check": None
        if self_check is None
        else {
            "passed": self_check,
            "elapsed_ms": 100.0,
            "checks": [
                {
                    "way": "twins",
                    "counter": "answers",
                    "specimen": "broken",
                    "verdict": "PROVEN DOUBLE-FIRE",
                    "passed": self_check,
                }
            ],
        },
        "verdict": made[0]["verdict"],
        "verdict_words": made[0]["verdict_words"],
        "reason": made[0]["reason"],
        "rests_on": made[0]["rests_on"],
        "effects": made[0]["effects"],
        "ways": made,
        "skipped": [],
        "notes": [],
        "cannot_see": ["effects that neither the answers nor a counter show"],
    }


def ledger_document() -> dict[str, Any]:
    """A ledger with everything in it."""
    events = ("admitted", "replayed", "refused", "unknown", "done")
    return {
        "schema": "fencekit.ledger-report/1",
        "tool_version": "0.1.0",
        "generated": "2026-11-30T12:00:00Z",
        "ledger": {"url": "sqlite:/var/lib/fence.db", "kind": "sqlite"},
        "stats": {
            "admitted": 40,
            "replayed": 120,
            "refused": {"in_flight": 7, "prior_failure": 3, "stale_read_set": 0},
            "total_attempts": 170,
            "prevented": 130,
        },
        "states": {"in_flight": 1, "done": 37, "unknown": 2},
        "unknown": [
            {
                "intent": "charge:order-7",
                "principal": "",
                "tool": "charge_card",
                "cause": "abort: the connection was lost",
                "since": "2026-11-29T09:00:00Z",
                "age_s": 97200,
                "ticket": "t-1",
                "revision": 2,
            },
            {
                "intent": "mail:9",
                "cause": "holder died",
                "since": "2026-11-30T11:59:00Z",
                "age_s": 60,
            },
        ],
        "in_flight": [{"intent": "scale:web", "tool": "scale", "age_s": 3.2, "lease_left_s": 56.8}],
        "timeline": [
            {
                "at": f"2026-11-30T{8 + n // 30:02d}:{n * 2 % 60:02d}:00Z",
                "event": events[n * n % 5],
                "intent": f"charge:order-{n}",
                "note": "",
            }
            for n in range(90)
        ],
        "left_out": {"timeline": 12},
    }


def battery_document() -> dict[str, Any]:
    """A client that held in one mode, over-fired in one and over-refused in one."""
    return {
        "schema": "fencekit.battery/1",
        "control": {"passed": True, "trials": 27, "failed": []},
        "modes": [
            {
                "mode": f"mode-{n}",
                "intent": "the effect happened, the answer was lost",
                "score": score,
                "charges": charges,
                "verified": 1,
                "ended": "exit 0",
            }
            for n, (score, charges) in enumerate(
                (("held", 1), ("over-fired", 2), ("over-refused", 0))
            )
        ],
    }
