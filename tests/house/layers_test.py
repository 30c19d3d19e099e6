"""layers.py finds each kind of fault in a small tree of its own."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

LAYERS = pathlib.Path(__file__).with_name("layers.py")
TABLE = """| folder | subject |
|---|---|
| `lib/faces/capi/` | face |
| `lib/core/engine/` | top |
| `providers/` | middle |
| `lib/core/base/` | bottom |
| `lib/include/` | public |
"""
GOOD = {
    "lib/README.md": TABLE,
    "lib/core/base/log.hpp": "",
    "lib/faces/capi/engine.cpp": '#include "base/log.hpp"\n',
    "providers/tcp.hpp": '#include "base/log.hpp"\n',
    "lib/core/engine/engine.hpp": '#include "base/log.hpp"\n#include "providers/tcp.hpp"\n',
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

    def test_refuses_an_arrow_that_goes_up(self):
        self.refuses({"lib/core/base/up.hpp": '#include "engine/engine.hpp"\n'}, "base -> engine goes up")

    def test_refuses_a_face_that_reaches_into_the_core(self):
        self.refuses({"lib/faces/capi/in.hpp": '#include "engine/engine.hpp"\n'},
                     "capi -> engine is not public")

    def test_refuses_an_include_without_its_folder(self):
        self.refuses({"providers/efa.hpp": '#include "tcp.hpp"\n'}, "does not carry its folder")

    def test_refuses_a_folder_that_the_table_lacks(self):
        self.refuses({"lib/core/new/new.hpp": ""}, "new: it is in only one of")

    def test_refuses_a_tree_without_includes(self):
        self.refuses({name: "" for name in GOOD if name.endswith("pp")}, "no includes were found")


if __name__ == "__main__":
    unittest.main()
