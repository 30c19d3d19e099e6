"""Python has a class for each code of an error, in the same order, and exports it.

Usage: codes_test.py ROOT
"""
import ast
import importlib.util
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
PACKAGE = ROOT / "lib/faces/python/weft"


def codes():
    """The names in weft::Code, which number themselves from 1."""
    header = (ROOT / "lib/include/weft/error.hpp").read_text(encoding="utf-8")
    body = re.search(r"enum class Code\b[^{]*\{(.*?)\};", header, re.DOTALL)[1]
    return re.findall(r"^ *(\w+)(?: = 1)?,", body, re.MULTILINE)


def errors():
    """The module by itself: importing the package would need the extension."""
    spec = importlib.util.spec_from_file_location("weft_errors", PACKAGE / "_errors.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Codes(unittest.TestCase):
    def test_each_has_its_class(self):
        self.assertIn("timed_out", codes())
        module = errors()
        raised = [module.of_code(number, "").code for number, _ in enumerate(codes(), 1)]
        self.assertEqual(codes(), raised)
        self.assertEqual(len(codes()), len(module._KINDS))

    def test_each_class_is_exported(self):
        module = errors()
        classes = {kind.__name__ for kind in module._KINDS} | {"Error"}
        self.assertEqual(classes, set(module.__all__))
        tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
        imported, exported = set(), set()
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "_errors":
                imported |= {each.name for each in node.names}
            if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
                exported = set(ast.literal_eval(node.value))
        self.assertEqual(classes, imported)
        self.assertLessEqual(classes, exported)


if __name__ == "__main__":
    unittest.main()
