"""NIXL's own suite over the plug-in.

Usage: nixls_suite.py PLUGIN ARGUMENTS-OF-PYTEST
"""

import os
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    plugin = sys.argv.pop(1)
    sys.path.append(os.path.join(HERE, "stand_in"))  # Last: a torch that is there is taken.
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(plugin, os.path.join(folder, "libplugin_WEFT.so"))
        os.environ["NIXL_PLUGIN_DIR"] = folder
        return pytest.main(sys.argv[1:])


sys.exit(main())
