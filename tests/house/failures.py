"""Prints what the failed tests of a run wrote: the end of it, without gtest's tests that passed.

Usage: failures.py TESTLOG.JSON...   (meson's, a line for each test)
"""
import json
import re
import sys

MOST_LINES = 200
FINE = ("OK", "EXPECTEDFAIL", "SKIP")
# Where one test of thousands fails, its lines come to stand near the end.
PASSED = re.compile(r"^\[ RUN      \] (.*)\n\[       OK \] \1 \(.*\n", re.MULTILINE)


def written(test):
    """Its last lines."""
    text = "".join(stream if stream.endswith("\n") else stream + "\n"
                   for stream in (test.get("stdout"), test.get("stderr")) if stream)
    lines = PASSED.sub("", text).splitlines()
    left_out = len(lines) - MOST_LINES
    if left_out > 0:
        lines[:left_out] = [f"({left_out} lines before)"]
    return lines


def report(log):
    """The lines for one log."""
    for line in log:
        test = json.loads(line)
        if test["result"] in FINE:
            continue
        yield f"=== {test['name']}: {test['result']} after {test['duration']:.1f} s, " \
              f"exit status {test['returncode']}"
        yield from written(test)


def main():
    """A log that is not there belongs to a stage without tests."""
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8", errors="replace") as log:
            for line in report(log):
                print(line)


if __name__ == "__main__":
    main()
