#!/usr/bin/env python3
"""docs/GLOSSARY.md and the code have one language: each term is where its row says, and no word that was given up is used."""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GLOSSARY = "docs/GLOSSARY.md"

# Whose names and comments have been gone through; a room that is, joins.
ROOMS = ("api", "base", "cli", "config", "core", "daemon", "engine", "guests", "lib", "node", "sim", "store/memory",
         "store/sqlite", "transport")

ROW = re.compile(r"\| ([^|]+?) \| ([^|]+?) \| \[`([^`]+)`\]\(\.\./([^)]+)\) \|$")
AVOIDED = re.compile(r"\| ([a-z ]+) \| ([^|]+) \|$")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def sources():
    for folder, folders, files in os.walk(os.path.join(ROOT, "src")):
        for name in sorted(files):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def tables(text):
    """The rows of both: terms, and words that are not used."""
    terms, avoided = text.split("\nNot used,")
    return ([ROW.match(line) or line for line in terms.split("\n") if line.startswith("| ") and not line.startswith("| term |")],
            [AVOIDED.match(line).group(1) for line in avoided.split("\n") if AVOIDED.match(line) and not line.startswith("| word |")])


def missing(rows, texts):
    """Terms that their file does not have by the name that the row gives, or that nobody says at all."""
    everything = "\n".join(texts.values()).lower()
    for row in rows:
        if isinstance(row, str):
            yield f"not a row of three with a link: {row}"
            continue
        term, _, name, path = row.groups()
        if path not in texts:
            yield f"{term}: there is no {path}"
        elif not re.search(rf"\b{re.escape(name)}(?![a-z])" if " " in name else rf"(?<![a-z]){re.escape(name)}", texts[path]):
            yield f"{term}: {path} has no {name}"
        if term not in everything and term.replace(" ", "_") not in everything:
            yield f"{term}: nobody says it"


def without_texts(code):
    """Comments and names; what stands between quotes is data, or is for users."""
    parts = re.findall(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])\'|[^"\'/]+|/', code, re.S)
    return "".join(re.sub(r"[^\n]", " ", part) if part[0] in "\"'" else part for part in parts)


def said(path, text, words):
    """Where a room uses words that were given up: in comments, and as a part of a name."""
    if not path.startswith(tuple(f"src/{room}/" for room in ROOMS)):
        return
    for number, line in enumerate(without_texts(text).split("\n"), 1):
        for word in words:
            if re.search(rf"(?<![a-zA-Z]){word}(?![a-zA-Z])", line, re.I):
                yield f"{path}:{number}: says {word}"


def judged():
    """The judge itself: what it must find and what it must not."""
    row = ROW.match("| lane | the queue | [`struct lane`](../src/a.h) |")
    texts = {"src/a.h": "struct lane { int x; };"}
    cases = [
        (list(missing([row], texts)), []),
        (list(missing([row], {"src/a.h": "struct lanes;"})), ["lane: src/a.h has no struct lane"]),
        (list(missing([row], {"src/b.h": "lane"})), ["lane: there is no src/a.h"]),
        (list(said("src/api/a.c", "int x; /* it is Kept */", ["kept"])), ["src/api/a.c:1: says kept"]),
        (list(said("src/api/a.c", "\nint is_kept;", ["kept"])), ["src/api/a.c:2: says kept"]),
        (list(said("tests/a.c", "int x; /* it is kept */", ["kept"])), []),
        (list(said("src/api/a.c", 'say("kept"); /* skeptic */', ["kept"])), []),
    ]
    return [f"found {found}, expected {expected}" for found, expected in cases if found != expected]


def main():
    texts = {path: read(path) for path in sources()}
    rows, words = tables(read(GLOSSARY))
    checks = [
        ("the judge finds what it should", judged()),
        ("terms are where the glossary says", list(missing(rows, texts)) if len(rows) > 20 else ["it has hardly any"]),
        ("words that were given up are not used", [fault for path, text in texts.items() for fault in said(path, text, words)]),
        ("the glossary is found", [path for path in ("README.md", "docs/ARCHITECTURE.md", "docs/README.md")
                                   if "GLOSSARY.md" not in read(path)]),
    ]
    print(f"1..{len(checks)}")
    for number, (name, faults) in enumerate(checks, 1):
        for fault in faults:
            print(f"# {fault}")
        print(f"{'not ok' if faults else 'ok'} {number} - {name}")
    sys.exit(any(faults for _, faults in checks))


main()
