#!/usr/bin/env python3
"""Checks the repository's pages: links, lengths of lines, code, commands, variables; and the site.

Each check takes a text and returns findings, as (line, sentence).
"""

import argparse
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/docs"))

import pages  # noqa: E402

LONGEST_LINE = 100
LONGEST_README = 150

# Measured tables and pictures of runs, with lines as they were printed.
WITHOUT_LIMIT = ("perf/", "tools/docs/benchmarks/", "tests/")


def check_lines(text):
    """Lines of at most 100 characters, but rows of tables and lines that are one link."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE and not line.startswith("|") and " " in line.strip():
            if not pages.GIVEN.match(line):
                yield number, f"{len(line)} characters, more than {LONGEST_LINE}"


def check_readme(text):
    if (count := text.count("\n")) > LONGEST_README:
        yield count, f"{count} lines, more than {LONGEST_README}"


def check_links(root, path, text):
    """Relative links lead to files that are there, and to headings in them."""
    for link in pages.links(text):
        if pages.OUTSIDE.match(link.to):
            continue
        file, _, anchor = link.to.partition("#")
        target = root / path.parent / file if file else root / path
        if not target.exists():
            yield link.number, f"{link.to}: there is no such file"
        elif anchor and target.suffix == ".md":
            if anchor not in {heading[3] for heading in pages.headings(target.read_text())}:
                yield link.number, f"{link.to}: there is no such heading"


PATH = re.compile(r"`((?:lib|perf|providers|tests|tools|topo)/[\w./+-]+)`")
# Pages of the day that they were written, and those of tests, which name other trees' files too.
ELSEWHERE = ("CHANGELOG.md", "tools/docs/benchmarks/", "tests/")


def check_paths(root, text):
    """Files and folders of the tree that are named are there, but for names without an ending, which
    may be of a few files or of what is built."""
    for number, line in enumerate(text.split("\n"), 1):
        for path in PATH.findall(line):
            at = root / path
            if not at.exists() and not list(at.parent.glob(f"{at.name}*")):
                yield number, f"{path}: there is no such file"


LIMITS = "tools/docs/limits.md"
TEST_NAME = re.compile(r"`(\w+)\.(\w+)`")
TEST_FILE = re.compile(r"`(tests/[\w./-]+)`")
ERROR_TEXT = re.compile(r'"((?:[^"\\]|\\.)+)"')
DEFINITION = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
JOINED = re.compile(r'"\s*\n\s*"')


def tests_of(root):
    """The names of tests that there are, as Suite.Name."""
    return {".".join(found) for path in sorted((root / "tests").rglob("*.cpp"))
            for found in DEFINITION.findall(path.read_text())}


def sources_of(root):
    """All that says errors, with the parts of each text in one."""
    folders = (root / name for name in ("lib", "providers", "topo"))
    return "\n".join(JOINED.sub("", path.read_text()) for folder in folders
                     for end in ("*.cpp", "*.hpp") for path in sorted(folder.rglob(end)))


def check_limits(root, tests, sources, text):
    """Each row of the limits names a test that there is, or the text of an error."""
    heads = True
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("|"):
            heads = True
            continue
        if heads or line.startswith("|--"):
            heads = False
            continue
        shown = re.split(r"(?<!\\)\|", line)[-2]
        named = [".".join(name) for name in TEST_NAME.findall(shown)]
        files = TEST_FILE.findall(shown)
        words = ERROR_TEXT.findall(re.sub(r"`[^`]*`", "", shown))
        if not named + files + words:
            yield number, "it names neither a test nor an error"
        yield from ((number, f"{name}: there is no such test") for name in named if name not in tests)
        yield from ((number, f"{file}: there is no such file") for file in files
                    if not (root / file).is_file())
        yield from ((number, f'"{said}": no error says so') for said in words if said not in sources)


# --- Code ------------------------------------------------------------------------------------

CPP_HEAD = """
#include <map>
#include <string>
#include <vector>
#include <weft/weft.hpp>
namespace {
[[maybe_unused]] void report(const weft::Error&) {}
"""
C_HEAD = """
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>
"""


def translation_unit(language, found):
    """One file out of all blocks, each in a namespace (C: a function) of its own."""
    out = [CPP_HEAD if language == "cpp" else C_HEAD]
    for index, (path, block) in enumerate(found):
        begin = f'#line {block.number} "{path}"'
        body = [line if not line.startswith("#include") else "" for line in block.text.split("\n")]
        includes = [line for line in block.text.split("\n") if line.startswith("#include")]
        out[0] = "\n".join(includes) + "\n" + out[0]
        if language == "cpp":
            out.append(f"namespace block_{index} {{")
            if block.given is not None:
                out.append("using namespace weft;\nusing namespace std::chrono_literals;")
                out.append(f"[[maybe_unused]] void block({block.given}) {{")
            out += [begin, *body, "}}" if block.given is not None else "}"]
        elif block.given is not None:
            out += [f"void block_{index}({block.given or 'void'});"]
            out += [f"void block_{index}({block.given or 'void'}) {{", begin, *body, "}"]
        else:
            out += [begin, *body]
    return "\n".join(out + (["}  // namespace"] if language == "cpp" else [])) + "\n"


def check_code(language, compiler, found):
    """The blocks of a language compile. Returns the compiler's words, empty if it has none."""
    if not found:
        return ""
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused",
                "-Wno-missing-field-initializers"]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / f"blocks.{language}"
        source.write_text(translation_unit(language, found))
        run = subprocess.run([*compiler, *warnings, "-fsyntax-only", source],
                             capture_output=True, text=True, check=False)
    return run.stderr if run.returncode else ""


# --- Commands --------------------------------------------------------------------------------

SHELL = {"sh", "bash", "console"}
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*)")
SCRIPTS = ("tools/demo", "tools/check", "tools/setup")


def commands(text):
    """(number, words) of each command in a block of shell, those that go on as one."""
    for block in pages.blocks(text):
        if block.language not in SHELL:
            continue
        whole, begin = "", 0
        for number, line in enumerate(block.text.split("\n"), block.number):
            begin = begin if whole else number
            whole += re.sub(r"(^|\s)#.*", "", line).rstrip("\\")
            if line.rstrip().endswith("\\"):
                continue
            for part in re.split(r"&&|\||;", whole):
                words = re.sub(r"^\s*\(?(?:\w+=\S+ +)*", "", part).split()
                if words:
                    yield begin, words
            whole = ""


class Help:
    """What programs say of their options, asked once."""

    def __init__(self, programs):
        self.programs, self.known = programs, {}

    def options(self, words):
        """Those of a command; None if it is none of ours, or was not built."""
        program = self.programs.get(words[0])
        if program is None:
            return None
        subcommand = [w for w in words[1:2] if re.fullmatch(r"[a-z]+", w)]
        key = (words[0], *subcommand)
        if key not in self.known:
            run = subprocess.run([program, *subcommand, "--help"],
                                 capture_output=True, text=True, check=False)
            said = run.stdout if run.returncode == 0 else ""
            self.known[key] = set(OPTION.findall(said)) | {"--help"}
        return self.known[key]


def check_commands(known, text):
    """The options of our own programs exist."""
    for number, words in commands(text):
        options = known.options(words)
        if options is None:
            continue
        if len(options) == 1:
            yield number, f"{' '.join(words[:2])}: there is no such command"
        for word in words[1:]:
            if word == "--":
                break
            option = word.partition("=")[0]
            if OPTION.fullmatch(option) and option not in options and len(options) > 1:
                yield number, f"{words[0]} has no option {option}"


VARIABLE = re.compile(r"\bWEFT_[A-Z][A-Z_]*[A-Z]\b")
# Of the library, but no options; of tests, of the C API.
OTHER_VARIABLES = re.compile(r"WEFT_(CONFIG_FILE|LIBFABRIC|LOG|NIXL_\w+|TEST_\w+|EFA_\w+|CUDA_\w+|"
                             r"GPU_\w+|VM_\w+|LONG|FABTESTS)")


def check_variables(options, text):
    """Variables that are named are those of options."""
    for number, line in enumerate(text.split("\n"), 1):
        for name in VARIABLE.findall(line):
            if name[5:].lower() not in options and not OTHER_VARIABLES.fullmatch(name):
                yield number, f"no option has the variable {name}"


def options_of(weft):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
    run = subprocess.run([weft, "info", "--json"], capture_output=True, text=True, check=True,
                         env=environment)
    return {setting["name"] for setting in json.loads(run.stdout)["settings"]}


# --- The site --------------------------------------------------------------------------------

class Anchors(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.names, self.links = set(), []

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key == "id" or (key == "name" and tag == "a"):
                self.names.add(value)
            elif key in ("href", "src", "data") and value and tag != "param":
                self.links.append((self.getpos()[0], value))


def check_site(folder):
    """Every link and picture of the built site leads somewhere in it."""
    read = {}
    for page in sorted(folder.rglob("*.html")):
        read[page] = Anchors()
        read[page].feed(page.read_text(errors="replace"))
    for page, found in read.items():
        for number, link in found.links:
            if pages.OUTSIDE.match(link) or link.startswith("//"):
                continue
            file, _, anchor = link.partition("#")
            file = urllib.parse.unquote(file.partition("?")[0])
            target = page.parent / file if file else page
            if not target.exists():
                yield page.name, number, f"{link}: there is no such file"
            elif anchor and target in read and anchor not in read[target].names:
                yield page.name, number, f"{link}: there is no such anchor"


# --- All of it -------------------------------------------------------------------------------

def check_all(options):
    found = []

    def add(path, findings):
        found.extend(f"{path}:{number}: {sentence}" for number, sentence in findings)

    programs = {name: options.root / name for name in SCRIPTS}
    programs |= {name: program for name, program in
                 (("weft", options.weft), ("weft-perf", options.weft_perf)) if program}
    known = Help(programs)
    settings = options_of(options.weft) if options.weft else None
    code = {"cpp": [], "c": []}
    for path in pages.find(options.root):
        text = (options.root / path).read_text()
        add(path, check_links(options.root, path, text))
        if not str(path).startswith(WITHOUT_LIMIT):
            add(path, check_lines(text))
        if not str(path).startswith(ELSEWHERE):
            add(path, check_paths(options.root, text))
        add(path, check_commands(known, text))
        if settings:
            add(path, check_variables(settings, text))
        if not str(path).startswith("tests/"):
            for block in pages.blocks(text):
                if block.language in code:
                    code[block.language].append((path, block))
    if (limits := options.root / LIMITS).is_file():
        add(LIMITS, check_limits(options.root, tests_of(options.root), sources_of(options.root),
                                 limits.read_text()))
    add("README.md", check_readme((options.root / "README.md").read_text()))

    include = [flag for folder in options.include for flag in ("-I", folder)]
    for language, compiler in (("cpp", [*options.cxx.split(), "-std=c++20"]),
                               ("c", [*options.cc.split(), "-std=c11"])):
        if options.include and (words := check_code(language, compiler + include, code[language])):
            found.append(words)
    if options.site:
        found += [f"{page}:{number}: {words}" for page, number, words in check_site(options.site)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--site", type=pathlib.Path, help="the folder html of the built site")
    parser.add_argument("--include", action="append", default=[], help="where headers are")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "c++"))
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--weft", help="the program, to compare commands and variables with")
    parser.add_argument("--weft-perf")
    found = check_all(parser.parse_args())
    print("\n".join(found) if found else "the pages are right")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
