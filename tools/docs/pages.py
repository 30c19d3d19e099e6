"""The repository's pages: which there are, and what stands in them. For the site and its checks."""

import pathlib
import re
from dataclasses import dataclass

FENCE = re.compile(r"^ *(```+) *(\S*)")
HEADING = re.compile(r"^(#{1,6}) +(.*?)(?: +\{#([\w-]+)\})?$")
CODE_SPAN = re.compile(r"(`+)(?!`)(?:[^`\n]|\n(?!\n))*?\1")
LINK = re.compile(r"(?<!\\)(!?)\[((?:[^\[\]]|\[[^\]]*\])*?)\]\(([^()\s]+)\)")
REFERENCE = re.compile(r"^\[([^\]]+)\]: (\S+)$", re.MULTILINE)
GIVEN = re.compile(r"^<!-- given:(.*)-->$")
OUTSIDE = re.compile(r"^[a-z]+:")


def find(root):
    """All pages below the folder, as paths relative to it."""
    left_out = {"build", "subprojects", ".git"}
    for path in sorted(root.rglob("*.md")):
        parts = path.relative_to(root).parts
        if not any(part in left_out or part.startswith(".") for part in parts[:-1]):
            yield pathlib.PurePosixPath(*parts)


@dataclass
class Line:
    number: int
    text: str
    in_code: bool


def lines(text):
    """Lines with their numbers; those of fenced and indented blocks, and fences, are `in_code`."""
    fence, after_blank, indented = "", True, False
    for number, line in enumerate(text.split("\n"), 1):
        match = FENCE.match(line)
        if fence:
            yield Line(number, line, True)
            if match and match[1].startswith(fence) and not match[2]:
                fence = ""
        elif match:
            fence = match[1]
            yield Line(number, line, True)
        else:
            deep = line.startswith("    ") and not re.match(r" +(?:[-*]|\d+\.) ", line)
            indented = deep and (indented or after_blank)
            yield Line(number, line, indented)
            after_blank = not line.strip() or line.startswith("#")


@dataclass
class Block:
    number: int  # of its first line
    language: str
    text: str
    given: str | None  # parameters, of a fragment


def blocks(text):
    """The fenced blocks."""
    fence, language, begin, body, given, before = "", "", 0, [], None, ""
    for number, line in enumerate(text.split("\n"), 1):
        match = FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not match[2]:
                yield Block(begin, language, "\n".join(body), given)
                fence = ""
            else:
                body.append(line)
        elif match:
            fence, language, begin, body = match[1], match[2], number + 1, []
            comment = GIVEN.match(before)
            given = comment[1].strip() if comment else None
        before = line


def slug(title):
    """The anchor that GitHub gives a heading."""
    title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


def headings(text):
    """(number, level, title, anchor) of each."""
    seen = {}
    for line in lines(text):
        match = None if line.in_code else HEADING.match(line.text)
        if match:
            anchor = slug(match[2])
            count = seen.get(anchor, 0)
            seen[anchor] = count + 1
            yield line.number, len(match[1]), match[2], f"{anchor}-{count}" if count else anchor


def masked(text):
    """The text with all code made unreadable, character for character."""
    shown = [re.sub(r".", "\1", line.text) if line.in_code else line.text for line in lines(text)]
    hide = lambda match: re.sub(r"[^\n]", "\1", match[0])
    return CODE_SPAN.sub(hide, "\n".join(shown))


@dataclass
class Link:
    begin: int  # in the text, of "[" or "!["
    end: int
    picture: bool
    text: str
    to: str
    number: int  # of its line


def links(text):
    """The links and pictures, and where references are defined."""
    bare = masked(text)
    for match in LINK.finditer(bare):
        words = text[match.start(2) : match.end(2)]
        number = text.count("\n", 0, match.start()) + 1
        yield Link(match.start(), match.end(), bool(match[1]), words, match[3], number)
    for match in REFERENCE.finditer(bare):
        number = text.count("\n", 0, match.start()) + 1
        yield Link(match.start(), match.end(), False, "", match[2], number)
