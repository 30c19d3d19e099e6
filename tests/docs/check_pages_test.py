"""Each check of the pages finds what it is for, and nothing in what is right."""

import os
import pathlib
import tempfile
import unittest

import check_pages
import pages
import site_of_pages


def blocks(language, text):
    return [("page.md", block) for block in pages.blocks(text) if block.language == language]


class Lines(unittest.TestCase):
    def test_long_lines_are_found(self):
        text = "short\n" + "word " * 21 + "\n"
        self.assertEqual([number for number, _ in check_pages.check_lines(text)], [2])

    def test_characters_count_and_tables_do_not(self):
        text = "─ " * 50 + "\n| " + "cell " * 30 + "|\n" + "x" * 120
        self.assertEqual(list(check_pages.check_lines(text)), [])

    def test_a_long_readme_is_found(self):
        self.assertTrue(list(check_pages.check_readme("line\n" * 151)))
        self.assertFalse(list(check_pages.check_readme("line\n" * 150)))


class Links(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        text = "# There\n\n## What *is* `this`?\n\n## Twice\n\n## Twice\n"
        (self.root / "there.md").write_text(text)

    def found(self, text):
        path = pathlib.PurePosixPath("page.md")
        return [words for _, words in check_pages.check_links(self.root, path, text)]

    def test_dead_files_and_headings_are_found(self):
        self.assertEqual(self.found("[a](gone.md)"), ["gone.md: there is no such file"])
        self.assertEqual(self.found("[a](there.md#gone)"),
                         ["there.md#gone: there is no such heading"])
        self.assertEqual(self.found("[a\nb](gone.md)"), ["gone.md: there is no such file"])
        self.assertEqual(self.found("![a][p]\n\n[p]: gone.svg"),
                         ["gone.svg: there is no such file"])

    def test_good_ones_are_not(self):
        self.assertEqual(self.found("[a](there.md#what-is-this) [`b`](there.md#twice-1)"), [])
        text = "[a](https://example.org) `[b](gone.md)`\n\n    [c](gone.md)"
        self.assertEqual(self.found(text), [])


class Paths(unittest.TestCase):
    def found(self, text):
        return [words for _, words in check_pages.check_paths(check_pages.ROOT, text)]

    def test_what_is_not_there_is_found(self):
        self.assertEqual(self.found("a `tests/docs` b `perf/gone` and `lib/core/engine/gone.cpp`"),
                         ["perf/gone: there is no such file",
                          "lib/core/engine/gone.cpp: there is no such file"])

    def test_several_files_and_other_words_are_not(self):
        self.assertEqual(self.found("`tests/docs/check_pages` `tests/unit/*.cpp` `a/b` lib/gone"), [])


class Limits(unittest.TestCase):
    head = "| limit | shown by |\n|---|---|\n"
    tests, sources = {"Suite.Name"}, 'fail("there is no room");'

    def found(self, row):
        return [words for _, words in check_pages.check_limits(
            check_pages.ROOT, self.tests, self.sources, f"Text.\n\n{self.head}{row}\n\nText.")]

    def test_those_that_nothing_shows_are_found(self):
        self.assertEqual(self.found("| a `Suite.Name` | nothing |"),
                         ["it names neither a test nor an error"])
        self.assertEqual(self.found("| a | `Suite.Gone` |"), ["Suite.Gone: there is no such test"])
        self.assertEqual(self.found("| a | `tests/docs/gone.cpp` |"),
                         ["tests/docs/gone.cpp: there is no such file"])
        self.assertEqual(self.found('| a | "there is room" |'), ['"there is room": no error says so'])

    def test_those_that_are_shown_are_not(self):
        self.assertEqual(self.found('| a | `Suite.Name`, "no room" |'), [])
        self.assertEqual(self.found("| a | `tests/docs/check_pages.py` |"), [])

    def test_names_and_texts_are_found_in_files(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tests").mkdir()
            (root / "lib").mkdir()
            (root / "tests/a_test.cpp").write_text("TEST_P(A, B) {\n}\nTEST(C,\n     D) {\n}\n")
            (root / "lib/a.cpp").write_text('fail("one "\n     "text");')
            self.assertEqual(check_pages.tests_of(root), {"A.B", "C.D"})
            self.assertIn("one text", check_pages.sources_of(root))


class Code(unittest.TestCase):
    def words(self, language, text):
        compiler = {"cpp": [os.environ.get("CXX", "c++"), "-std=c++20"],
                    "c": [os.environ.get("CC", "cc"), "-std=c11"]}[language]
        head = check_pages.CPP_HEAD, check_pages.C_HEAD
        check_pages.CPP_HEAD, check_pages.C_HEAD = "namespace {\nint one();\n", "int one(void);\n"
        try:
            return check_pages.check_code(language, " ".join(compiler).split(),
                                          blocks(language, text))
        finally:
            check_pages.CPP_HEAD, check_pages.C_HEAD = head

    def test_what_does_not_compile_is_found_where_it_stands(self):
        cpp = "text\n```cpp\nint f() { return gone(); }\n```"
        self.assertIn("page.md:3", self.words("cpp", cpp))
        c = "<!-- given: int a -->\n```c\na = gone();\n```"
        self.assertIn("page.md:3", self.words("c", c))

    def test_fragments_and_repeated_names_compile(self):
        once = "```cpp\n#include <vector>\nstruct A {};\n```\n"
        self.assertEqual(self.words("cpp", once + once), "")


class Commands(unittest.TestCase):
    def found(self, command):
        programs = {"tools/check": check_pages.ROOT / "tools/check"}
        text = f"```sh\n{command}\n```"
        return [words for _, words in check_pages.check_commands(check_pages.Help(programs), text)]

    def test_options_that_do_not_exist_are_found(self):
        self.assertEqual(self.found("tools/check --quickly"),
                         ["tools/check has no option --quickly"])
        self.assertEqual(self.found("true && A=b tools/check --quick \\\n  --gone=1"),
                         ["tools/check has no option --gone"])

    def test_good_ones_and_other_programs_are_not(self):
        self.assertEqual(self.found("tools/check --quick   # --gone"), [])
        self.assertEqual(self.found("other --gone | tools/check -- --gone"), [])

    def test_variables_without_an_option_are_found(self):
        check = lambda text: list(check_pages.check_variables({"listen"}, text))
        self.assertEqual(check("WEFT_LISTENS=1"), [(1, "no option has the variable WEFT_LISTENS")])
        self.assertEqual(check("WEFT_LISTEN=1 WEFT_LOG=debug WEFT_CONFIG_FILE=x"), [])


class Site(unittest.TestCase):
    def found(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                (pathlib.Path(folder) / f"{name}.html").write_text(text)
            return [words for _, _, words in check_pages.check_site(pathlib.Path(folder))]

    def test_dead_links_are_found(self):
        self.assertEqual(self.found(a='<a href="b.html">'), ["b.html: there is no such file"])
        self.assertEqual(self.found(a='<a href="b.html#x">', b='<p id="y">'),
                         ["b.html#x: there is no such anchor"])
        self.assertEqual(self.found(a='<img src="b.png">'), ["b.png: there is no such file"])

    def test_good_ones_are_not(self):
        found = self.found(a='<a href="b.html#x"><a href="#y" id="y">', b='<p id="x">')
        self.assertEqual(found, [])


class Rewriting(unittest.TestCase):
    """Of pages for Doxygen."""

    def page(self, path, text):
        known = {pathlib.PurePosixPath(each) for each in
                 ("README.md", "CONTRIBUTING.md", "tools/docs/README.md", "tools/docs/a.md")}
        return site_of_pages.Rewriter(known).page(pathlib.PurePosixPath(path), text)

    def test_headings_have_labels_and_links_name_them(self):
        self.assertEqual(self.page("tools/docs/a.md", "# A\n\n## B c\n\n[x](#b-c)"),
                         "# A {#docs-a}\n\n## B c {#docs-a--b-c}\n\n\\ref docs-a--b-c \"x\"")

    def test_a_list_gives_a_page_its_place_once(self):
        self.assertEqual(self.page("tools/docs/README.md", "[A](a.md) [again](a.md)"),
                         '\\subpage docs-a "A" \\ref docs-a "again"')

    def test_sources_and_code_are_left_as_text(self):
        self.assertEqual(self.page("README.md", "[`f`](lib/f.cpp) `[A](tools/docs/a.md)`"),
                         "`f` `[A](tools/docs/a.md)`")


if __name__ == "__main__":
    unittest.main()
