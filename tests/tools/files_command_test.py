"""weft serve and weft fetch from outside: real processes, every byte.

Usage: files_command_test.py WEFT [unittest arguments]
"""

import json
import os
import random
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from programs import PATIENCE, Program  # noqa: E402

WEFT = sys.argv.pop(1)
PROGRAM = Program(WEFT)
weft = PROGRAM.run


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = os.path.join(folder.name, "served")
        self.here = os.path.join(folder.name, "here")
        os.makedirs(os.path.join(self.dir, "below"))
        os.mkdir(self.here)
        self.contents = {name: random.Random(name).randbytes(size)
                         for name, size in (("page", 4096), ("odd", 1), ("large", (5 << 20) + 77),
                                            ("below/layer", 70_001))}
        for name, content in self.contents.items():
            self.write(os.path.join(self.dir, name), content)
        self.write(os.path.join(self.dir, "empty"), b"")
        self.write(os.path.join(self.here, "secret"), b"not shared")
        os.symlink(os.path.join(self.here, "secret"), os.path.join(self.dir, "link"))

    @staticmethod
    def write(path, content):
        with open(path, "wb") as file:
            file.write(content)

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            return file.read()

    def serving(self, *arguments):
        return PROGRAM.listening("serve", "--dir", self.dir, *arguments)

    def fetch(self, address, *arguments):
        return weft("fetch", "--peer", address, *arguments)

    def fetched(self, address, name, *arguments):
        path = os.path.join(self.here, "fetched")
        result = self.fetch(address, name, "--output", path, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(os.listdir(self.here).count("fetched.part"), 0)
        return self.read(path)

    def test_every_byte(self):
        for provider in ("shm", "tcp"):
            for way in ([], ["--buffered"]):
                with self.serving("--providers", provider, *way) as (_, address):
                    for name, content in self.contents.items():
                        self.assertEqual(self.fetched(address, name, "--providers", provider),
                                         content, (provider, way, name))

    def test_list(self):
        with self.serving() as (_, address):
            listed = json.loads(self.fetch(address, "--json").stdout)["files"]
            self.assertEqual({each["name"]: int(each["bytes"]) for each in listed},
                             {name: len(content) for name, content in self.contents.items()})
            text = self.fetch(address).stdout.splitlines()
            self.assertIn(["70001", "below/layer"], [line.split() for line in text])

    def test_names_that_are_not_shared(self):
        with self.serving() as (_, address):
            for name in ("nothing", "link", "empty", "../here/secret", "/"):
                result = self.fetch(address, name, "--output", os.path.join(self.here, "fetched"))
                self.assertEqual(result.returncode, 1, name)
                self.assertRegex(result.stderr, "shares no file")
        self.assertEqual(os.listdir(self.here), ["secret"])

    def test_a_file_that_is_cut_off_meanwhile(self):
        with self.serving() as (_, address):
            os.truncate(os.path.join(self.dir, "large"), 1 << 20)
            result = self.fetch(address, "large", "--output", os.path.join(self.here, "fetched"))
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, "large' ends at byte .*cut off")
            self.assertEqual(os.listdir(self.here), ["secret"])
            self.assertEqual(self.fetched(address, "page"), self.contents["page"])

    def test_ends_by_a_signal(self):
        with self.serving("--json") as (process, address):
            self.fetched(address, "page")
            process.send_signal(signal.SIGTERM)
            said, complaint = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 128 + signal.SIGTERM, complaint)
            report = json.JSONDecoder().raw_decode(said)[0]
            self.assertEqual((report["address"], report["files"]), (address, 4))

    def test_no_folder(self):
        result = weft("serve", "--dir", os.path.join(self.here, "nothing"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "^weft serve: the folder '.*nothing': No such file")

    def test_names_of_any_letters(self):
        odd = "a b\n\x1b[1m"
        self.write(os.path.join(self.dir, odd), b"seen")
        with self.serving() as (_, address):
            listed = json.loads(self.fetch(address, "--json").stdout)["files"]
            name, = (each["name"] for each in listed if each["name"].startswith("a b"))
            self.assertEqual(self.fetched(address, name), b"seen")


if __name__ == "__main__":
    unittest.main()
