"""Three agents, one cluster: one is admitted, two are refused by the fence, each told why.

All three read the cluster before anybody acts. A scales it. B decides on what it read, which A has
moved: its read-set is stale. C comes from elsewhere with a clock that neither saw A's action nor
was seen by it: its view is concurrent, and a human has to decide.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from fencekit.core.certificate import EffectCert
from fencekit.core.errors import CausalConflict, ReadSetStale, Refused
from fencekit.core.messages import Fresh
from fencekit.fence import Fence


@dataclass
class Cluster:
    """What the agents quarrel about; it remembers what was really done to it."""

    nodes: int = 3
    executed: list[str] = field(default_factory=list)

    def act(self, tool: str, args: dict[str, Any]) -> dict[str, int]:
        """Do it, whatever anybody thinks of it."""
        self.executed.append(tool)
        self.nodes = args.get("nodes", self.nodes)
        return {"nodes": self.nodes}


@dataclass(frozen=True)
class Proposal:
    """What one agent wants to do, and what the fence said: a certificate or a refusal."""

    agent: str
    wants: str
    said: EffectCert | Refused


@dataclass(frozen=True)
class War:
    """How the war went."""

    proposals: tuple[Proposal, ...]
    executed: int
    nodes: int

    @property
    def shortcomings(self) -> list[str]:
        """Why it did not show what it is meant to show; empty where it did."""
        wanted = (EffectCert, ReadSetStale, CausalConflict)
        found = [
            f"{p.agent} was to be answered with {kind.__name__}, not {type(p.said).__name__}"
            for p, kind in zip(self.proposals, wanted, strict=True)
            if not isinstance(p.said, kind)
        ]
        if self.executed != 1:
            found.append(f"{self.executed} proposals were executed, not one")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the war as a JSON object."""
        return {
            "proposed": len(self.proposals),
            "executed": self.executed,
            "nodes": self.nodes,
            "proposals": [
                {
                    "agent": p.agent,
                    "wants": p.wants,
                    "admitted": isinstance(p.said, EffectCert),
                    "said": p.said.hash if isinstance(p.said, EffectCert) else str(p.said),
                    "kind": type(p.said).__name__,
                }
                for p in self.proposals
            ],
            "shortcomings": self.shortcomings,
        }


def run(ledger: str) -> War:
    """Fight the war on a ledger, in domains of its own. Raises `LedgerError`."""
    cluster = Cluster()
    run_id = secrets.token_hex(4)
    prod = f"cluster:prod-{run_id}"
    with Fence.open(ledger) as fence:
        # Everybody reads first. C has been at work elsewhere: its clock has moved, A's has not.
        seen = fence.current(prod).seq
        elsewhere = fence.reserve(f"budget:{run_id}", expected=0, agent="C").clock

        def propose(
            agent: str, wants: str, tool: str, args: dict[str, Any], **cites: Any
        ) -> Proposal:
            intent = f"{tool}:{run_id}:{agent}"
            try:
                admission = fence.prepare(intent, tool, args, agent=agent, **cites)
            except Refused as refusal:
                return Proposal(agent, wants, refusal)
            if isinstance(admission, Fresh):
                done = cluster.act(tool, args)
                return Proposal(agent, wants, fence.commit(admission.ticket, done))
            return Proposal(agent, wants, admission.cert)

        a = propose(
            "A",
            "scale the cluster to 5 nodes: traffic rises",
            "scale_cluster",
            {"nodes": 5},
            domain=prod,
            read_set=[(prod, seen)],
        )
        b = propose(
            "B",
            "spread a service over the 3 nodes that it saw",
            "spread_service",
            {"service": "checkout", "over": 3},
            domain=f"service:{run_id}",
            read_set=[(prod, seen)],
        )
        c = propose(
            "C",
            "scale the cluster to 2 nodes: the budget shrank",
            "scale_cluster",
            {"nodes": 2},
            domain=prod,
            known_clock=elsewhere,
            causal=True,
        )
    return War((a, b, c), len(cluster.executed), cluster.nodes)
