"""`fencekit index`: keep the Retry-Safety Index, a register whose rows link to their proof."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TypeVar

import click

from fencekit.index.problem import RegisterError
from fencekit.report.escape import terminal

F = TypeVar("F", bound=Callable[..., object])

FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.group()
def command() -> None:
    """Keep a register of what was observed: named rows with proof, open findings only counted.

    Exit: 0 done, 2 the register is not fit to be published (each line says where and what to do).
    """


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except RegisterError as error:
        for problem in error.problems:
            click.echo(terminal(problem, limit=500), err=True)
        sys.exit(2)
    except OSError as error:
        click.echo(f"fencekit index: {error.filename}: {error.strerror}", err=True)
        sys.exit(2)


def _today() -> date:
    """Return the day by which re-checks are judged: `SOURCE_DATE_EPOCH`, else today (UTC)."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).date()
    if not epoch.isdecimal():
        raise click.UsageError(f"SOURCE_DATE_EPOCH must be seconds since 1970, not {epoch!r}")
    return datetime.fromtimestamp(int(epoch), UTC).date()


def _private_option(function: F) -> F:
    return click.option(
        "--private",
        type=FOLDER,
        help="The directory of open and undetermined entries; it is only counted.",
    )(function)


@command.command()
@click.argument("directory", type=FOLDER)
@click.option("--private", is_flag=True, help="Make a private directory: for what is not named.")
def init(directory: Path, private: bool) -> None:
    """Make an empty register in DIRECTORY."""
    from fencekit.index import drafts

    with _told():
        drafts.init(directory, private=private)
    click.echo(f"{directory}: an empty register" + (" (private)" if private else ""))


@command.command()
@click.argument("directory", type=FOLDER)
@click.option("--probe", type=FILE, help="What `fencekit probe --json` printed.")
@click.option("--scan", type=FILE, help="What `fencekit scan --json` printed.")
@click.option("--battery", type=FILE, help="What `fencekit hostile --battery --json` printed.")
@click.option("--test", type=FILE, help="What `fencekit probe --emit-test` wrote, for the owner.")
@click.option("--id", "entry_id", help="The entry's id; default: from the target's name.")
def add(
    directory: Path,
    probe: Path | None,
    scan: Path | None,
    battery: Path | None,
    test: Path | None,
    entry_id: str | None,
) -> None:
    """Draft an entry from evidence; its verdict is left empty for a person to write."""
    from fencekit.index import drafts

    given = (
        (probe, "probe run", "probe"),
        (scan, "code read", "scan"),
        (battery, "battery run", "battery"),
    )
    with _told():
        read = [drafts.read_given(path, tier, kind) for path, tier, kind in given if path]
        if not read:
            raise click.UsageError("give at least one of --probe, --scan, --battery")
        text = test.read_text(encoding="utf-8") if test else ""
        target = drafts.add(directory, read, _today(), entry_id=entry_id, test=text)
    click.echo(f"{target}: drafted; write its state and verdict, then `fencekit index check`")


@command.command()
@click.argument("directory", type=FOLDER)
@_private_option
def check(directory: Path, private: Path | None) -> None:
    """Check every entry, its evidence and its history; each problem names a file and a line."""
    from fencekit.index import register

    with _told():
        loaded = register.load(directory, private)
    click.echo(f"{len(loaded.items)} entries, {loaded.tally.words} not named: sound")


@command.command()
@click.argument("directory", type=FOLDER)
@click.option("--out", type=FOLDER, required=True, help="Where the site goes; swapped in whole.")
@_private_option
@click.option("--base-url", help="The address of the site, for feed links, sitemap and shields.")
def build(directory: Path, out: Path, private: Path | None, base_url: str | None) -> None:
    """Build the static site. The same entries give the same bytes."""
    from fencekit.index import register, site

    if base_url is not None and not base_url.startswith("https://"):
        raise click.UsageError("--base-url must start with https://")
    with _told():
        loaded = register.load(directory, private)
        files = site.build(loaded, _today(), base_url)
        site.publish(files, out)
        # Only what was published is locked: a build that failed binds nobody.
        register.write_lock(directory, loaded.items)
        if private is not None:
            register.write_lock(private, loaded.private)
            register.write_tally(loaded)
    click.echo(f"{out}: {len(files)} files, {len(loaded.items)} entries")


@command.command()
@click.argument("site", type=FOLDER)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes a free one.")
def serve(site: Path, port: int) -> None:
    """Look at a built SITE on this machine, until interrupted."""
    from fencekit.index import serve as serving

    if not (site / "index.html").is_file():
        raise click.UsageError(f"{site} holds no built site: run `fencekit index build` first")
    with serving.server(site, port) as server:
        click.echo(f"http://127.0.0.1:{server.server_address[1]}/")
        server.serve_forever()


@command.command()
@click.argument("entry", type=FILE)
def brief(entry: Path) -> None:
    """Print the owner's private report on one ENTRY file, as Markdown."""
    from fencekit.index import brief as briefing
    from fencekit.index import register

    with _told():
        loaded = register.load_one(entry)
        click.echo(briefing.write(entry.parent.parent, loaded))


@command.command()
@click.argument("directory", type=FOLDER, required=False)
@click.option("--form", type=FILE, help="A filled form; without it, a blank one is printed.")
def submit(directory: Path | None, form: Path | None) -> None:
    """Print a submission form, or draft an entry in DIRECTORY from a filled one."""
    from fencekit.index import drafts

    if form is None:
        click.echo(drafts.form(), nl=False)
        return
    if directory is None:
        raise click.UsageError("say in which DIRECTORY the entry is to be drafted")
    with _told():
        target = drafts.from_form(directory, form.read_text("utf-8"), str(form), _today())
    click.echo(f"{target}: drafted from {form}")


@command.command()
@click.argument("directory", type=FOLDER)
@click.argument("entry_id")
@_private_option
def retire(directory: Path, entry_id: str, private: Path | None) -> None:
    """Take a row out at its owner's wish; with --private, keep it there, counted."""
    from fencekit.index import drafts

    with _told():
        drafts.retire(directory, entry_id, private)
    click.echo(f"{entry_id}: taken out")
