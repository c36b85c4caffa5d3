#!/usr/bin/env python3
"""Usage: count.py COMPILED RUN. Prints the table of docs/kernels.md from the outputs of the tests `corpus` and `corpus_runs`.

A file is unchanged if files.txt lists nothing that its project does to it before it compiles it.
"""
import collections
import pathlib
import re
import sys

COLUMNS = (
    "files",
    "complete",
    "accepted",
    "of these unchanged",
    "compile everywhere",
    "agree everywhere",
    "agree on two devices",
    "write nothing",
    "undetermined",
)


def outcomes(output):
    """The outcome of each file, with the reason if it is ignored."""
    found = re.findall(r"^test corpus(?:_runs)?::(\S+) +\.\.\. (.*)$", pathlib.Path(output).read_text(), re.MULTILINE)
    return dict(found)


def count(compiled, run, is_unchanged):
    """The columns that a file counts in."""
    yield "files"
    if re.search("is not WGSL yet|no definition in scope", compiled):
        return
    yield "complete"
    if compiled.startswith("ignored"):
        return
    yield "accepted"
    if is_unchanged:
        yield "of these unchanged"
    if compiled == "ok":
        yield "compile everywhere"
    if run == "ok":
        yield "agree everywhere"
    elif "undetermined: " in run:
        yield "undetermined"
    elif "ran on one device only" in run or "unfinished: " in run:
        return
    elif "lacks: " in run:
        yield "agree on two devices"
    elif "unwritten: " in run:
        yield "write nothing"


def main():
    compiled, run = map(outcomes, sys.argv[1:])
    table = collections.defaultdict(collections.Counter)
    for line in (pathlib.Path(__file__).parent / "files.txt").read_text().splitlines():
        repository, _, path, *changes = line.split()
        name = f"{repository}/{path}".replace("#", "/")
        columns = list(count(compiled[name], run[name], not changes and "#" not in path))
        for row in (repository, "all"):
            table[row].update(columns)
    print(f"| project | {' | '.join(COLUMNS)} |\n| --- |{' --- |' * len(COLUMNS)}")
    for row in sorted(table, key=lambda name: (name == "all", name.lower())):
        print(f"| {row} | {' | '.join(str(table[row][column] or '') for column in COLUMNS)} |")


main()
