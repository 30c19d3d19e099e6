"""layers.py finds each kind of fault in a small tree of its own."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

LAYERS = pathlib.Path(__file__).with_name("layers.py")
TABLE = """| folder | subject | may include |
|---|---|---|
| `lib/engine/` | top | `base`, `providers` |
| `providers/` | middle | `base` |
| `lib/base/` | bottom |  |
"""
GOOD = {
    "lib/README.md": TABLE,
    "lib/base/log.hpp": "",
    "providers/tcp.hpp": '#include "base/log.hpp"\n',
    "lib/engine/engine.hpp": '#include "base/log.hpp"\n#include "providers/tcp.hpp"\n',
}


def result_of(changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (GOOD | changes).items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        run = subprocess.run([sys.executable, LAYERS, folder], capture_output=True, text=True, timeout=60)
        return run.returncode, run.stdout


class Layers(unittest.TestCase):
    def refuses(self, changes, why):
        status, output = result_of(changes)
        self.assertEqual(1, status, output)
        self.assertIn(why, output)

    def test_takes_a_tree_that_keeps_to_its_table(self):
        self.assertEqual((0, ""), result_of({}))

    def test_refuses_an_arrow_that_is_not_listed(self):
        self.refuses({"lib/base/up.hpp": '#include "engine/engine.hpp"\n'}, "base -> engine is not in")

    def test_refuses_a_table_with_a_circle(self):
        circle = TABLE.replace("bottom |  |", "bottom | `engine` |")
        self.refuses({"lib/README.md": circle, "lib/base/up.hpp": '#include "engine/engine.hpp"\n'},
                     "base -> engine does not go down")

    def test_refuses_an_include_without_its_folder(self):
        self.refuses({"providers/efa.hpp": '#include "tcp.hpp"\n'}, "does not carry its folder")

    def test_refuses_a_listed_arrow_that_nobody_needs(self):
        self.refuses({"providers/tcp.hpp": ""}, "lists providers -> base, which no include needs")

    def test_refuses_a_tree_without_includes(self):
        self.refuses({"providers/tcp.hpp": "", "lib/engine/engine.hpp": ""}, "no includes were found")


if __name__ == "__main__":
    unittest.main()
