"""What the name of a tool says when the server gives no hints: only reading, or perhaps more.

Pure. A wrong "only reads" lets an effect run twice, a wrong "may write" costs one replayed answer,
so a name reads only where one of its words says so and no word says otherwise.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _few(text: str) -> list[str]:
    return text.split()


READS = frozenset(
    _few("""
    get gets list lists read reads search searches find finds show shows describe
    describes view views lookup count counts exists status retrieve retrieves logs top
    stats statistics diff balance balances info inspect whoami version history preview
    summarize summary browse tail head grep glob tree stat ls cat compare analyze
    explain details metrics schema usage
    """)
)
# Verbs that change something; one of them anywhere in the name and the tool is no reader.
WRITES = frozenset(
    _few("""
    abort accept acknowledge activate add adjust allocate allow append apply approve
    archive assign attach authorize ban bind block book bump buy cancel capture change
    charge checkout claim clear click clone close commit complete configure confirm
    connect convert copy cordon create credit deactivate debit decline delegate delete
    deny deploy deposit destroy detach disable disconnect dismiss dispatch drain drop
    edit email enable enqueue erase evict expire export fill finalize fire flush forget
    fork forward generate grant hire import increment ingest init initialize insert
    install invite invoke issue join kick kill label launch leave link lock log login
    logout make mark merge migrate mint modify move mute notify open order patch pause
    pay payout ping place play post press promote provision publish purchase purge push
    put react rebase rebuild record redeem refresh refund register reject release remove
    rename renew reopen reorder replace reply request reschedule reserve reset resize
    resolve restart restore resume retry revert revoke roll rollback rotate save scale
    schedule seed sell send set settle share shutdown sign start stop store submit
    subscribe suspend swap switch sync tag taint terminate toggle trade transfer trigger
    type unarchive unassign unblock uncordon undo uninstall unlink unlock unmute unpin
    unpublish unregister unsubscribe untag update upgrade upload upsert use void vote
    withdraw wipe write
    """)
)
# What a caller passes through these may be anything.
ANYTHING = frozenset(
    _few("""
    query queries fetch check run runs exec execute sql eval evaluate call command shell
    bash script process do perform handle manage tool action batch bulk transaction
    """)
)
# Also nouns: after a leading verb that reads, they are what is read (`get_order`, `list_refunds`).
_NOUNS = frozenset(
    _few("""
    action batch block book call capture charge checkout claim command commit credit
    deposit email export fork invoice issue label leave link lock log login message move
    order payout place post press process purchase query record refund release request
    run script share start store tag trade transaction transfer type update upload vote
    """)
)
_LEADS = frozenset(
    _few("""
    get list read search find show describe view lookup count retrieve
    """)
)
_JOINTS = frozenset(
    _few("""
    and or then if
    """)
)
_MONEY = frozenset(
    _few("""
    buy capture charge checkout debit deposit order pay payout purchase refund sell send
    trade transfer wire withdraw email sms message
    """)
)


def words(text: str) -> list[str]:
    """Split a name at case changes, digits and everything that is no letter; lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def write_word(name: str) -> str | None:
    """Return the first word of a tool's name that changes something, or None.

    `log` is a noun at the end of a name (`git_log`) and a verb before its object (`log_event`).
    """
    found = words(name)
    for at, word in enumerate(found):
        if word in WRITES and not _is_noun(found, at):
            return word
    return None


def _is_noun(found: list[str], at: int) -> bool:
    """Whether a word that could be a verb is a noun where it stands."""
    if found[at] == "log" and at == len(found) - 1:
        return True
    leads = at > 0 and found[0] in _LEADS and not _JOINTS.intersection(found)
    return leads and found[at] in _NOUNS


def money_word(text: str) -> str | None:
    """Return the first word that moves money or sends something to somebody, or None."""
    return next((word for word in words(text) if word in _MONEY), None)


def reads_only(name: str, description: str) -> str | None:
    """Return the word by which a tool only reads, or None where nothing says so for certain.

    Of the description only the leading verb of its first sentence counts.
    """
    found = words(name)
    if write_word(name) is not None or any(
        word in ANYTHING and not _is_noun(found, at) for at, word in enumerate(found)
    ):
        return None
    lead = next(iter(words(description[:200])), "")
    stem = lead.removesuffix("s")
    if {lead, stem} & (WRITES | ANYTHING) and not {lead, stem} & READS:
        return None
    for word in found:
        if word in READS or word == "log":
            return word
    return lead if {lead, stem} & READS or stem == "return" else None
