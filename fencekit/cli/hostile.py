"""`fencekit hostile`: a server that misbehaves on cue, and a battery that scores a client on it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[MODE | -- CLIENT… {server}]")
@click.option("--list", "show", is_flag=True, help="List the modes and what each is about.")
@click.option(
    "--effects",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file that records every effect (default: a new temporary one, told on stderr).",
)
@click.option("--battery", "run_battery", is_flag=True, help="Run a client through every mode.")
@click.option(
    "--limit",
    default=60.0,
    type=click.FloatRange(0.1),
    show_default=True,
    help="Seconds for the client in each mode.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the battery's result as JSON.")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write the battery as a page."
)
def command(
    words: tuple[str, ...],
    show: bool,
    effects: Path | None,
    run_battery: bool,
    limit: float,
    as_json: bool,
    html: Path | None,
) -> None:
    """Serve one mode on stdio, or score a client command in all of them.

    \b
    fencekit hostile 5xx-after-settle --effects charges.jsonl
    fencekit hostile --battery -- my-agent --mcp {server} --charge {order}

    In the client's command `{server}` becomes the command of the hostile server and `{order}` the
    order to charge (also in FENCEKIT_ORDER). Exit: 0 held in every mode, 1 over-fired or
    over-refused somewhere, 2 the client did not run or the battery failed its own control.
    """
    from fencekit.probe.hostile import MODES

    if show:
        for mode in MODES.values():
            click.echo(f"{mode.name:<27} {mode.intent}")
        return
    if run_battery:
        sys.exit(_battery(words, limit, as_json=as_json, html=html))
    if len(words) != 1 or words[0] not in MODES:
        raise click.UsageError(f"name one mode of: {', '.join(MODES)}; or use --battery")
    _serve(words[0], effects)


def _serve(mode: str, effects: Path | None) -> None:
    import tempfile

    from fencekit.probe.hostile import serve

    if effects is None:
        handle = tempfile.NamedTemporaryFile(  # noqa: SIM115 - kept for the reader afterwards
            prefix="fencekit-effects-", suffix=".jsonl", delete=False
        )
        handle.close()
        effects = Path(handle.name)
        click.echo(f"fencekit hostile: effects are recorded in {effects}", err=True)
    serve(mode, effects)


def _battery(words: tuple[str, ...], limit: float, *, as_json: bool, html: Path | None) -> int:
    from fencekit.probe.battery import Score, battery, controls, fill

    try:
        fill(words, ["server"], "order")
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    _say("checking the battery on three built-in clients")
    checked = list(controls())
    failed = [control for control in checked if not control.passed]
    trials = [] if failed else battery(words, limit=limit, say=_say)
    document = {
        "schema": "fencekit.battery/1",
        "control": {
            "passed": not failed,
            "trials": len(checked),
            "failed": [f"{c.client} in {c.mode}: {c.score}, not {c.expected}" for c in failed],
        },
        "modes": [
            {
                "mode": trial.mode.name,
                "intent": trial.mode.intent,
                "score": str(trial.score),
                "charges": trial.charges,
                "verified": trial.verifies,
                "ended": trial.ended,
            }
            for trial in trials
        ],
    }
    if html is not None:
        from fencekit.report import battery_html

        html.write_text(battery_html.render(document), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(document, indent=2))
    else:
        _print(document)
    scores = {trial.score for trial in trials}
    if failed or Score.NOT_RUN in scores:
        return 2
    return 1 if scores - {Score.HELD} else 0


def _say(text: str) -> None:
    click.echo(f"fencekit hostile: {text}", err=True)


def _print(document: dict[str, Any]) -> None:
    control = document["control"]
    for entry in document["modes"]:
        counts = f"{entry['charges']} charged, {entry['verified']} verified"
        click.echo(f"{entry['mode']:<27} {entry['score']:<13} {counts}, {entry['ended']}")
    if document["modes"]:
        held = sum(entry["score"] == "held" for entry in document["modes"])
        fired = sum(entry["score"] == "over-fired" for entry in document["modes"])
        refused = sum(entry["score"] == "over-refused" for entry in document["modes"])
        total = len(document["modes"])
        click.echo(
            f"held in {held} of {total} modes; over-fired in {fired}, over-refused in {refused}"
        )
    word = "passed" if control["passed"] else "FAILED, no client was scored"
    click.echo(f"mutation control {word} ({control['trials']} trials on built-in clients)")
    for line in control["failed"]:
        click.echo(f"  {line}")
