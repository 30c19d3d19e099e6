"""weft serve and weft fetch from outside: real processes, every byte.

Usage: files_command_test.py WEFT [unittest arguments]
"""

import json
import os
import random
import resource
import signal
import stat
import subprocess
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
        self.write(os.path.join(self.here, "elsewhere"), b"linked")
        os.symlink(os.path.join(self.here, "elsewhere"), os.path.join(self.dir, "link"))
        self.contents |= {"empty": b"", "link": b"linked"}

    @staticmethod
    def write(path, content):
        with open(path, "wb") as file:
            file.write(content)

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            return file.read()

    def serving(self, *arguments, **more):
        return PROGRAM.listening("serve", "--dir", self.dir, *arguments, **more)

    def fetch(self, address, *arguments, **more):
        return weft("fetch", "--peer", address, *arguments, **more)

    def fetched(self, address, name, *arguments):
        path = os.path.join(self.here, "fetched")
        result = self.fetch(address, name, "--output", path, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(os.listdir(self.here)), ["elsewhere", "fetched"])
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
            for name in ("nothing", "../here/elsewhere", "/"):
                result = self.fetch(address, name, "--output", os.path.join(self.here, "fetched"))
                self.assertEqual(result.returncode, 1, name)
                self.assertRegex(result.stderr, "shares no file")
        self.assertEqual(os.listdir(self.here), ["elsewhere"])

    def test_what_is_no_file_is_written_to_in_place(self):
        with self.serving() as (_, address):
            for name, content in self.contents.items():
                for provider in ("shm", "tcp"):
                    result = subprocess.run(
                        [os.path.abspath(WEFT), "fetch", "--peer", address, name, "--output", "-",
                         "--providers", provider], capture_output=True, timeout=PATIENCE, cwd=self.here)
                    self.assertEqual((result.returncode, result.stdout), (0, content), name)
            pipe = os.path.join(self.here, "pipe")
            os.mkfifo(pipe)
            with tempfile.TemporaryFile() as heard, \
                    subprocess.Popen(["cat", pipe], stdout=heard) as reader:
                result = self.fetch(address, "large", "--output", pipe)
                self.assertEqual(result.returncode, 0, result.stderr)
                reader.wait(PATIENCE)
                heard.seek(0)
                self.assertEqual(heard.read(), self.contents["large"])
            self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
        self.assertEqual(sorted(os.listdir(self.here)), ["elsewhere", "pipe"])

    def test_modes(self):
        path = os.path.join(self.here, "fetched")
        with self.serving() as (_, address):
            self.fetch(address, "page", "--output", path, umask=0o027)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o640)
            os.chmod(path, 0o604)
            self.fetched(address, "odd")
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o604)

    def test_what_can_not_be_shared_is_left_out(self):
        os.symlink("nowhere", os.path.join(self.dir, "dangling"))
        os.symlink("..", os.path.join(self.dir, "below", "loop"))
        long = os.path.join(self.dir, *["long" * 50] * 2)
        os.makedirs(long)
        self.write(os.path.join(long, "page"), b"its path is too long a name")
        os.mkfifo(os.path.join(self.dir, "pipe"))
        with self.serving("--json") as (process, address):
            listed = json.loads(self.fetch(address, "--json").stdout)["files"]
            self.assertEqual({each["name"] for each in listed}, set(self.contents))
            process.send_signal(signal.SIGTERM)
            said, complaints = process.communicate(timeout=PATIENCE)
        report = json.JSONDecoder().raw_decode(said)[0]
        self.assertEqual((report["files"], report["left_out"]), (len(self.contents), 3))
        for words in ("'dangling' is left out: No such file", "'below/loop' is left out: it is a",
                      "page' is left out: "):
            self.assertIn("weft serve: ", complaints)
            self.assertIn(words, complaints)

    def test_more_files_than_descriptors(self):
        for number in range(600):
            self.write(os.path.join(self.dir, f"{number}"), b"x")
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512))
        with self.serving("--json", preexec_fn=limit) as (process, address):
            listed = json.loads(self.fetch(address, "--json").stdout)["files"]
            self.assertGreater(len(listed), 100, "the soft limit is no limit")
            self.assertEqual(self.fetched(address, listed[0]["name"]), b"x")
            process.send_signal(signal.SIGTERM)
            said, complaints = process.communicate(timeout=PATIENCE)
        report = json.JSONDecoder().raw_decode(said)[0]
        self.assertEqual(report["left_out"], 600 + len(self.contents) - len(listed))
        self.assertRegex(complaints, r"files are left out: .* 512 descriptors \(ulimit -n\)")

    def test_a_file_that_is_cut_off_meanwhile(self):
        with self.serving() as (_, address):
            os.truncate(os.path.join(self.dir, "large"), 1 << 20)
            result = self.fetch(address, "large", "--output", os.path.join(self.here, "fetched"))
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, "large' ends at byte .*cut off")
            self.assertEqual(os.listdir(self.here), ["elsewhere"])
            self.assertEqual(self.fetched(address, "page"), self.contents["page"])

    def test_ends_by_a_signal(self):
        with self.serving("--json") as (process, address):
            self.fetched(address, "page")
            process.send_signal(signal.SIGTERM)
            said, complaint = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 128 + signal.SIGTERM, complaint)
            report = json.JSONDecoder().raw_decode(said)[0]
            self.assertEqual((report["address"], report["files"]), (address, len(self.contents)))

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
