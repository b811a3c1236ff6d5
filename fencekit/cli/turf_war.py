"""`fencekit turf-war`: three agents on one cluster, one action."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING

import click

from fencekit.cli.fencing import ledger_option, opened

if TYPE_CHECKING:
    from fencekit.demo.turf_war import Proposal

_WIDTH = 79


@click.command()
@ledger_option("memory")
@click.option("--json", "as_json", is_flag=True, help="Print what happened as JSON.")
def command(ledger: str | None, as_json: bool) -> None:
    """Let three agents act on one cluster: one is admitted, two are refused and told why.

    Exit: 0 three proposed and one executed, 1 anything else.
    """
    from fencekit.demo import turf_war

    war = opened(lambda: turf_war.run(ledger or "memory:"))
    if as_json:
        click.echo(json.dumps(war.to_json()))
    else:
        click.echo("turf war: three agents, one cluster, all read it before anybody acts")
        for proposal in war.proposals:
            _print(proposal)
        click.echo(f"\n{len(war.proposals)} proposed, {war.executed} executed")
    for shortcoming in war.shortcomings:
        click.echo(f"fencekit turf-war: {shortcoming}", err=True)
    sys.exit(1 if war.shortcomings else 0)


def _print(proposal: Proposal) -> None:
    from fencekit.core.certificate import EffectCert

    click.echo(f"\n{proposal.agent} wants to {proposal.wants}")
    if isinstance(proposal.said, EffectCert):
        verdict, why = "ADMITTED", f"executed, certificate {proposal.said.hash[:12]}"
    else:
        verdict, why = "REFUSED", f"{type(proposal.said).__name__}: {proposal.said}"
    lead = f"  {verdict:<8}  "
    click.echo(textwrap.fill(lead + why, _WIDTH, subsequent_indent=" " * len(lead)))
