#!/usr/bin/env python3
"""Builds the site of all pages and the API reference, by Doxygen.

Doxygen knows no anchors of headings by their titles, and no order of pages. So it gets copies of
the pages: their headings have labels, their links name these, and lists of links make the tree of
the navigation.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pages

START = pathlib.PurePosixPath("README.md")
# Their links make the tree of the navigation, in this order.
LISTS = [pathlib.PurePosixPath(p) for p in ("tools/docs/README.md", "README.md", "CONTRIBUTING.md")]
HEADERS = pathlib.PurePosixPath("lib/include/weft")


def label(path, anchor=""):
    """Doxygen's name for a page, or for a heading in it."""
    if path == START:
        page = "start"
    else:
        parts = [part for part in path.with_suffix("").parts if part not in ("tools", "README")]
        page = "-".join(parts)
    return f"{page}--{anchor}" if anchor else page


def target_of(path, link):
    """The file in the repository that a page's link leads to, and the anchor."""
    file, _, anchor = link.partition("#")
    if not file:
        return path, anchor
    joined = os.path.normpath(pathlib.PurePosixPath(path).parent / file)
    return pathlib.PurePosixPath(joined), anchor


class Rewriter:
    """Turns pages into what Doxygen understands."""

    def __init__(self, known):
        self.known = known
        self.pictures = set()
        self.placed = {START}  # pages that have a place in the tree

    def is_below(self, page, other):
        """Whether the link on `page` is what gives `other` its place in the tree."""
        if other in self.placed:
            return False
        list_of_folder = other.parent / "README.md"
        if other.name != "README.md" and list_of_folder in self.known:
            return page == list_of_folder
        return page in LISTS or page.parent in other.parents

    def link(self, path, link):
        if pages.OUTSIDE.match(link.to):
            return f"{'!' if link.picture else ''}[{link.text}]({link.to})"
        file, anchor = target_of(path, link.to)
        if link.picture:
            self.pictures.add(file)
            return f"![{link.text}]({file.name})"
        if file / "README.md" in self.known:
            file = file / "README.md"
        words = " ".join(link.text.replace("`", "").replace('"', "'").split())
        if file in self.known and not anchor and self.is_below(path, file):
            self.placed.add(file)
            return f'\\subpage {label(file)} "{words}"'
        if file in self.known:
            return f'\\ref {label(file, anchor)} "{words}"'
        if file.parent == HEADERS:
            return f'\\ref {file.name} "{words}"'
        return link.text  # a source file: it is not in the site

    def page(self, path, text):
        text = self.with_labels(path, self.without_references(text))
        out, end = [], 0
        for link in pages.links(text):
            out += [text[end : link.begin], self.link(path, link)]
            end = link.end
        return "".join(out) + text[end:]

    @staticmethod
    def with_labels(path, text):
        shown = text.split("\n")
        for number, level, _, anchor in pages.headings(text):
            name = label(path) if level == 1 else label(path, anchor)
            shown[number - 1] += f" {{#{name}}}"
        return "\n".join("" if pages.GIVEN.match(line) else line for line in shown)

    @staticmethod
    def without_references(text):
        for name, to in pages.REFERENCE.findall(pages.masked(text)):
            text = text.replace(f"][{name}]", f"]({to})").replace(f"[{name}]: {to}", "")
        return text


def write_pages(root, folder):
    """Writes the pages for Doxygen into the folder; says which pictures they show."""
    known = set(pages.find(root))
    rewriter = Rewriter(known)
    shutil.rmtree(folder, ignore_errors=True)
    for path in LISTS + sorted(known - set(LISTS)):
        copy = folder / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(rewriter.page(path, (root / path).read_text()))
    return rewriter.pictures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--doxygen", default="doxygen")
    parser.add_argument("--version", required=True)
    parser.add_argument("--headers", action="append", default=[], type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    options = parser.parse_args()

    source, output = options.source.resolve(), options.output.resolve()
    pictures = write_pages(source, output / "pages")
    quoted = lambda paths: " ".join(f'"{path.resolve()}"' for path in paths)
    words = {
        "version": options.version,
        "source": source,
        "output": output,
        "headers": quoted(options.headers),
        "pictures": quoted(sorted({source / picture.parent for picture in pictures})),
    }
    text = (source / "tools/docs/Doxyfile.in").read_text()
    doxyfile = output / "Doxyfile"
    doxyfile.write_text(re.sub("@([a-z]+)@", lambda match: str(words[match[1]]), text))
    shutil.rmtree(output / "html", ignore_errors=True)
    return subprocess.run([options.doxygen, doxyfile], cwd=output, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
