#!/usr/bin/env python3
"""Makes from the table of options (options.ini) what the program and its reader need of it.

Usage: generate_options.py header OPTIONS TEMPLATE OUTPUT   weft/config.hpp
       generate_options.py table OPTIONS OUTPUT             the rows behind weft::options()
       generate_options.py page OPTIONS OUTPUT              tools/docs/options.md
       generate_options.py check OPTIONS PAGE               fails if the page is not up to date
       generate_options.py python OPTIONS OUTPUT            weft/_options.py
"""
import configparser
import json
import pathlib
import re
import sys
import textwrap

# Type in the table: its type in C++, its name for users, its default where the table has none.
TYPES = {
    "text": ("std::string", "text", ""),
    "list": ("std::vector<std::string>", "list", ""),
    "flag": ("bool", "flag", "false"),
    "unsigned": ("unsigned", "number", "0"),
    "size_t": ("std::size_t", "number", "0"),
    "bytes": ("std::uint64_t", "bytes", "0"),
    "time": ("Nanoseconds", "time", "0ns"),
    "progress": ("Progress", "threads or manual", "threads"),
    "transport": ("TransportKind", "automatic, one_sided, bounce or device_copy", "automatic"),
    "policy": ("Policy", "policy", ""),
    "policies": ("std::map<std::string, Policy>", "policies", ""),
}
KEYS = {"type", "default", "range", "unit", "doc"}
SHIFTS = {"": 0, "KiB": 10, "MiB": 20, "GiB": 30}
CLOCKS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
WIDTH = 100

PAGE = """\
# Options

Every option of an engine. The program sets it in `weft::Config`, or by name and text with
`weft::set_option()` or `weft_config_set()`. What the program leaves at its default comes from the
environment (`WEFT_` and the name in capitals: `WEFT_BOUNCE_BUFFERS=8`), else from the TOML file
that `config_file` or `WEFT_CONFIG_FILE` names (`bounce_buffers = 8`). A variable that begins with
`WEFT_` and is no option gets a warning. `weft info` shows each value and where it came from.

As text, lists have commas between their items, times are whole numbers with a unit (`100us`; `ns`,
`us`, `ms`, `s`), bytes may have one (`512KiB`; `KiB`, `MiB`, `GiB`), and flags are `true` or
`false`.

Two variables are of the whole process, and no options of an engine: `WEFT_LOG` (`debug`, `info`,
`warning`, `error`, `off`) sets the log level, and `WEFT_LIBFABRIC` names the
[libfabric](providers/README.md#which-libfabric) to load.

`lib/core/config/generate_options.py` wrote this page from `lib/core/config/options.ini`.
"""

# Type in the table: its type in Python.
PYTHON_TYPES = {
    "text": "str",
    "list": "Sequence[str] | str",
    "flag": "bool",
    "unsigned": "int",
    "size_t": "int",
    "bytes": "int | str",
    "time": "float | str",
    "progress": 'Literal["threads", "manual"]',
    "transport": 'Literal["automatic", "one_sided", "bounce", "device_copy"]',
    "policy": "Policy | str",
    "policies": "Mapping[str, Policy | str] | str",
}

PYTHON = '''\
"""Made by lib/core/config/generate_options.py from lib/core/config/options.ini."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from ._weft import Policy


class Options(TypedDict, total=False):
    """Keywords of Engine(). All may be left out.

    Times are seconds, or text with a unit ("100us"); bytes are numbers, or text ("512KiB").

    use_environment: whether the environment completes what the program leaves out (true).
@docs@
    """

    use_environment: bool
@fields@
'''


class Option:
    def __init__(self, name, row, group):
        if not KEYS.issuperset(row) or not {"type", "doc"}.issubset(row):
            sys.exit(f"[{name}] must have a type and a doc, and no keys but {sorted(KEYS)}")
        if row["type"] not in TYPES:
            sys.exit(f"[{name}] has the type {row['type']}, which is none of {sorted(TYPES)}")
        self.name = name
        self.group = group
        self.variable = "WEFT_" + name.upper()
        self.kind = row["type"]
        self.cpp_type, self.type, standard = TYPES[self.kind]
        self.standard = row.get("default", standard)
        self.least, self.most = bounds(name, row.get("range", ""))
        self.unit = row.get("unit", "")
        self.doc = " ".join(row["doc"].split())

    def range(self):
        if not self.least:
            return ""
        unit = f" {self.unit}" if self.kind == "text" else ""
        return f"{self.least} to {self.most}{unit}" if self.most else f"at least {self.least}{unit}"

    def initializer(self):
        """The default in C++."""
        if not self.standard:
            return "{}"
        if self.kind == "text":
            return json.dumps(self.standard)
        if self.kind in ("progress", "transport"):
            return f"{self.cpp_type}::{self.standard}"
        number, unit = re.fullmatch(r"(\d*)(\w*)", self.standard).groups()
        if self.kind == "time":
            return f"std::chrono::{CLOCKS[unit]}({number})"
        if self.kind == "bytes" and SHIFTS[unit]:
            return f"std::uint64_t{{{number}}} << {SHIFTS[unit]}"
        return self.standard


def bounds(name, text):
    """"1 to 64", "at least 1" or "" as (least, most)."""
    found = re.fullmatch(r"(?:at least (\w+)|(\w+) to (\w+))?", text)
    if not found:
        sys.exit(f"[{name}] has the range '{text}': say '1 to 64' or 'at least 1'")
    alone, least, most = found.groups()
    return alone or least or "", most or ""


def read(path):
    """The groups in order: (title, doc, options)."""
    parser = configparser.ConfigParser(interpolation=None, default_section="no such section")
    with open(path, encoding="utf-8") as file:
        parser.read_file(file)
    groups = []
    for name in parser.sections():
        row = parser[name]
        if "type" in row:
            groups[-1][2].append(Option(name, row, groups[-1][0]))
        else:
            groups.append((name, " ".join(row.get("doc", "").split()), []))
    return groups


def comment(text):
    return textwrap.fill(text, WIDTH, initial_indent="  /// ", subsequent_indent="  /// ",
                         break_long_words=False, break_on_hyphens=False)


def fields(groups):
    """The fields of Config."""
    lines = []
    for title, doc, options in groups:
        lines += ["", f"  /// @name {title}", *([comment(doc)] if doc else []), "  /// @{"]
        for option in options:
            limits = f" Range: {option.range()}." if option.range() else ""
            lines += ["", comment(option.doc + limits)]
            lines += [f"  {option.cpp_type} {option.name} = {option.initializer()};"]
        lines += ["  /// @}"]
    return "\n".join(lines)


def header(groups, template):
    return template.replace("@fields@", fields(groups))


def table(groups):
    """A source file with the rows and, for each, how its field is read, written and checked."""
    options = [option for _, _, members in groups for option in members]
    out = ["// Made by generate_options.py from options.ini.", '#include "config/option.hpp"', "",
           "#include <array>", "", "namespace weft {", "namespace {", "",
           "constexpr std::array option_infos = {"]
    for option in options:
        texts = (option.name, option.variable, option.group, option.type, option.standard,
                 option.least, option.most, option.unit, option.doc)
        out += [f"    OptionInfo{{{', '.join(json.dumps(text) for text in texts)}}},"]
    out += ["};", "", "}  // namespace", "",
            "std::span<const OptionInfo> options() {", "  return option_infos;", "}", "",
            "namespace core {", "", "std::span<const Option> option_table() {",
            "  static constexpr std::array table = {"]
    out += [f"      option<&Config::{option.name}>(option_infos[{index}]),"
            for index, option in enumerate(options)]
    out += ["  };", "  return table;", "}", "", "}  // namespace core", "}  // namespace weft", ""]
    return "\n".join(out)


def page(groups):
    out = [PAGE]
    for title, doc, options in groups:
        out += [f"## {title}", ""]
        if doc:
            out += [textwrap.fill(doc, 100, break_long_words=False, break_on_hyphens=False), ""]
        out += ["| option | type | default | range | what it does |", "|---|---|---|---|---|"]
        for option in options:
            standard = f"`{option.standard}`" if option.standard else ""
            kind = option.unit if option.type == "number" else option.type
            out += [f"| `{option.name}` | {kind} | {standard} | {option.range()} | {option.doc} |"]
        out += [""]
    return "\n".join(out).rstrip() + "\n"


def python_module(groups):
    """The keywords of weft.Engine."""
    options = [option for _, _, members in groups for option in members]
    docs = []
    for option in options:
        standard = f" Default: {option.standard}." if option.standard else ""
        limits = f" Range: {option.range()}." if option.range() else ""
        docs += [textwrap.fill(f"{option.name}: {option.doc}{limits}{standard}", WIDTH,
                               initial_indent="    ", subsequent_indent="        ",
                               break_long_words=False, break_on_hyphens=False)]
    fields = [f"    {option.name}: {PYTHON_TYPES[option.kind]}" for option in options]
    return PYTHON.replace("@docs@", "\n".join(docs)).replace("@fields@", "\n".join(fields))


def write(path, text):
    """Leaves a file alone that says so already: what is built of it need not be built again."""
    path = pathlib.Path(path)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    mode, source, *rest = sys.argv[1:]
    groups = read(source)
    if mode == "header":
        template, output = rest
        write(output, header(groups, pathlib.Path(template).read_text(encoding="utf-8")))
    elif mode == "table":
        write(rest[0], table(groups))
    elif mode == "page":
        write(rest[0], page(groups))
    elif mode == "python":
        write(rest[0], python_module(groups))
    elif mode == "check":
        if pathlib.Path(rest[0]).read_text(encoding="utf-8") != page(groups):
            sys.exit(f"{rest[0]} is not what {source} says: ninja options-page renews it")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
