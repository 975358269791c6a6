#!/usr/bin/env python3
"""tools/tidy catches each kind of violation, and passes a tree without any."""
import os
import subprocess
import sys
import tempfile

TIDY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "tidy")

HEADER = "/*\n * slice.h - borrowed bytes.\n */\n#ifndef BASE_SLICE_H\n#define BASE_SLICE_H\n\n#include <stddef.h>\n\n#endif\n"
ADR = "# 1. Title\n\n## Context\n\nWhy.\n\n## Decision\n\nWhat.\n\n## Consequences\n\nSo.\n"
CLEAN = {
    "src/base/slice.h": HEADER,
    "src/core/decision/decide.c": '#include "base/slice.h"\n\n#include <string.h>\n\nint decide(void)\n{\n    assert(1);\n    return 0;\n}\n',
    "src/main.c": '#include "base/slice.h"\n\n#include <stdio.h>\n',
    "src/README.md": "Sources.\n",
    "src/base/README.md": "Ground floor: `slice`, `a`.\n",
    "src/core/README.md": "Decisions: `a`.\n",
    "src/core/decision/README.md": "What to do: `decide`, `a`.\n",
    "docs/README.md": "See [one](adr/0001-one.md).\n",
    "docs/adr/README.md": "- [One](0001-one.md)\n",
    "docs/adr/0001-one.md": ADR,
    "tools/README.md": "Tools.\n",
    "tools/embed": "#!/bin/sh\ntrue\n",
}


def body(lines):
    return "int long_one(int a)\n{\n" + "    a++;\n" * (lines - 2) + "}\n"


# name, files put on top of the clean tree (None removes one), the rule that must fail (None: none), what it must say
CASES = [
    ("a clean tree passes", {}, None, ""),
    ("a lower layer includes a higher one", {"src/base/a.c": '#include "core/decision/decide.h"\n'}, "layers", "src/base/a.c:1: base may not include core/decision/decide.h"),
    ("a header by its bare name", {"src/base/a.c": '#include "slice.h"\n'}, "layers", '"slice.h" is in no layer'),
    ("a folder that is no layer", {"src/misc/a.c": "int a;\n", "src/misc/README.md": "`a`.\n"}, "layers", "src/misc/a.c:1: lies in no layer"),
    ("a file beside rooms that have none beside them", {"src/core/a.c": "int a;\n"}, "layers", "src/core/a.c:1: lies in no room; the rooms of core are decision"),
    ("a room that nobody named", {"src/base/misc/a.c": "int a;\n", "src/base/misc/README.md": "`a`.\n"}, "layers", "the rooms of base are none"),
    ("a room without a door to another", {"src/core/decision/a.c": '#include "core/outage/gate.h"\n'}, "layers",
     "core/decision may not include core/outage/gate.h: it has no door to that room"),
    ("a room with one", {"src/core/outage/a.c": '#include "core/decision/decide.h"\n', "src/core/outage/README.md": "`a`.\n"}, None, ""),
    ("a kind of store known outside", {"src/cli/a.c": '#include "store/sqlite/sqlite.h"\n', "src/cli/README.md": "`a`.\n"}, "layers",
     "src/cli/a.c:1: store/sqlite/sqlite.h is only for src/main.c"),
    ("but in one place", {"src/main.c": '#include "store/sqlite/sqlite.h"\n'}, None, ""),
    ("a read that goes round the door", {"src/api/jobs/a.c": "int a = call->api->reader;\n", "src/api/README.md": "A.\n",
                                         "src/api/jobs/README.md": "`a`.\n"}, "door", "src/api/jobs/a.c:1: api->reader is only for"),
    ("a room without README", {"src/core/decision/README.md": None}, "folders", "src/core/decision/README.md:1: missing"),
    ("core knows the public header", {"src/core/decision/a.c": "#include <insist.h>\n"}, "layers", "core may not include insist.h"),
    ("the public header leans on a private one", {"include/insist.h": '/*\n * insist.h - api\n */\n#ifndef INSIST_H\n#define INSIST_H\n#include "base/slice.h"\n#endif\n',
                                                  "include/README.md": "Public.\n"}, "layers", "the public header may not include"),
    ("core includes a clock", {"src/core/decision/a.c": "#include <time.h>\n"}, "core", "core may not reach time.h"),
    ("core includes a system call", {"src/core/decision/a.c": "#  include <sys/socket.h>\n"}, "core", "core may not reach sys/socket.h"),
    ("core reaches stdio through base", {"src/base/slice.h": HEADER.replace("stddef", "stdio")}, "core", "core may not reach stdio.h (through src/base/slice.h)"),
    ("a function of 60 lines passes", {"src/core/decision/a.c": body(60)}, None, ""),
    ("a function of 61 lines", {"src/core/decision/a.c": body(61)}, "functions", "src/core/decision/a.c:2: long_one has 61 lines"),
    ("a file of 801 lines", {"src/core/decision/a.c": "int a;\n" * 801}, "functions", "src/core/decision/a.c:1: 801 lines"),
    ("core keeps an invariant without an assertion", {"src/core/decision/a.c": body(5) + body(5)}, "assertions", "src/core:1: 1 assertions for 3 functions"),
    ("a header of 201 lines", {"src/base/slice.h": HEADER.replace("#include", "\n" * 193 + "#include")}, "small", "202 lines and 0 prototypes"),
    ("31 prototypes", {"src/base/slice.h": HEADER.replace("#endif", "int f(int a);\n" * 31 + "#endif")}, "small", "and 31 prototypes"),
    ("a struct of 26 members", {"src/base/a.c": "struct a {\n" + "    int a, *b; /* c, d */\n" * 13 + "};\n"}, "small", "struct a has 26 members"),
    ("a struct whose parts have some", {"src/base/a.c": "struct a {\n" + "    struct {\n        int a, b, c, d;\n    } a;\n" * 25 + "};\n"}, None, ""),
    ("a table is not a function", {"src/core/decision/a.c": "int t[] = {\n" + "    0,\n" * 90 + "};\n"}, None, ""),
    ("the rows of a table inside a function are not counted", {"src/core/decision/a.c": body(60).replace("{\n", "{\n" + "        { 1, 2 },\n" * 9, 1)}, None, ""),
    ("a row may be longer", {"src/core/decision/a.c": "    { " + "1, " * 50 + "},\n"}, None, ""),
    ("but not without limit", {"src/core/decision/a.c": "    { " + "1, " * 60 + "},\n"}, "white space", "the limit is 160"),
    ("unfinished work", {"src/core/decision/a.c": "/* TO" + "DO: more. */\n"}, "unfinished", "src/core/decision/a.c:1: unfinished"),
    ("white space at the end", {"src/core/decision/a.c": "int a; \n"}, "white space", "src/core/decision/a.c:1: white space"),
    ("a carriage return", {"docs/README.md": "Docs.\r\n"}, "white space", "docs/README.md:1: white space"),
    ("a tab", {"src/core/decision/a.c": "\tint a;\n"}, "white space", "src/core/decision/a.c:1: a tab"),
    ("a line too long", {"src/core/decision/a.c": "/* " + "x" * 123 + "\n"}, "white space", "126 columns"),
    ("no line feed at the end", {"src/core/decision/a.c": "int a;"}, "white space", "must end with one line feed"),
    ("inputs may be anything", {"tests/fuzz/corpus/x/in.yaml": "\ta \r\n/ro" + "ot/x", "tests/README.md": "T.\n", "tests/fuzz/README.md": "F.\n"}, None, ""),
    ("a wrong guard", {"src/base/slice.h": HEADER.replace("BASE_SLICE_H", "SLICE_H")}, "headers", "the include guard must be BASE_SLICE_H"),
    ("a header that does not say what it is", {"src/base/slice.h": HEADER.replace("slice.h - b", "B")}, "headers", "must begin with a comment"),
    ("a folder without README", {"src/core/README.md": None}, "folders", "src/core/README.md:1: missing"),
    ("a README too long", {"src/README.md": "x\n" * 41}, "folders", "src/README.md:1: 41 lines"),
    ("a README that leaves out a module", {"src/base/README.md": "Ground floor.\n"}, "a README names", "src/base/README.md:1: does not say what slice is"),
    ("a README that names what is gone", {"src/base/README.md": "`slice`, `gone.c`.\n"}, "a README names", "names gone.c, which is not there"),
    ("a decision without consequences", {"docs/adr/0001-one.md": ADR.replace("## Consequences\n\n", "")}, "decisions", "its headings must be"),
    ("a gap in the numbers", {"docs/adr/0003-three.md": ADR.replace("# 1.", "# 3."), "docs/adr/README.md": "[1](0001-one.md) [3](0003-three.md)\n"}, "decisions", "must be named 0002"),
    ("a decision not in the list", {"docs/adr/README.md": "None.\n"}, "decisions", "is not in docs/adr/README.md"),
    ("a dead link", {"docs/README.md": "[gone](adr/0009-gone.md)\n"}, "links", "docs/README.md:1: links to adr/0009-gone.md"),
    ("a web link is not followed", {"docs/README.md": "[web](https://example.org/x) [here](#top)\n"}, None, ""),
    ("a comment without an end", {"src/core/decision/a.c": "/* The end is missing */\nint a;\n"}, "comments", "src/core/decision/a.c:1: a comment"),
    ("a comment without a beginning", {"src/core/decision/a.c": "\n/* a word is not\n * a sentence. */\n"}, "comments", "and begins as one"),
    ("a comment behind code, a heading, a library's name", {"src/core/decision/a.c":
     "int a; /* so many */\n/* ---- next ---- */\n/* libcurl says so. */\n"}, None, ""),
    ("a path of one machine", {"docs/README.md": "See /ho" + "me/me/x.\n"}, "nothing names", "docs/README.md:1: /ho" + "me/m"),
    ("a script without interpreter", {"tools/embed": "true\n"}, "scripts", "tools/embed:1: must begin with"),
]


def tidy(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            if text is not None:
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8", newline="") as file:
                    file.write(text)
                os.chmod(full, 0o755)
        return subprocess.run([TIDY, root], capture_output=True, text=True, check=False)


def problem_of(files, rule, message):
    """What is wrong with tidy's answer; empty if it is right."""
    answer = tidy(dict(CLEAN, **files))
    failed = [line for line in answer.stdout.splitlines() if line.startswith("not ok")]
    if rule is None:
        return "" if answer.returncode == 0 and not failed else "must pass"
    if answer.returncode != 1 or len(failed) != 1 or f" - {rule}" not in failed[0] and rule not in failed[0]:
        return f"exactly the rule about {rule} must fail"
    return "" if message in answer.stdout else f"must say {message!r}"


def main():
    failures = 0
    print(f"1..{len(CASES)}")
    for number, (name, files, rule, message) in enumerate(CASES, 1):
        problem = problem_of(files, rule, message)
        print(f"{'not ok' if problem else 'ok'} {number} - {name}")
        if problem:
            failures += 1
            print(f"# {problem}; tidy said:")
            print("\n".join("#   " + line for line in tidy(dict(CLEAN, **files)).stdout.splitlines()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
