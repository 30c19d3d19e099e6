"""weft-perf-report: lines, pictures and pages of what weft-perf has measured.

Usage: report_test.py WEFT-PERF-REPORT WEFT-PERF [unittest arguments]
"""

import copy
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

REPORT, WEFT_PERF = sys.argv.pop(1), sys.argv.pop(1)
LIMIT = 60
HAS_GNUPLOT = unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")


def measured(folder):
    """Real results of two providers and two sizes beside a baseline with latencies and one without."""
    path = os.path.join(folder, "measured")
    subprocess.run([WEFT_PERF, "--local", "--count", "20", "--repeats", "2", "--warm-up", "0", "--time",
                    "0.05", "--size", "4K,64K", "--providers", "tcp,shm", "--baseline", "raw,memcpy",
                    "--json", path], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.measured = measured(folder)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.document = copy.deepcopy(self.measured)
        self.point = self.document["points"][0]

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_it(self, *arguments, **more):
        return subprocess.run([sys.executable, REPORT, "-", *arguments], capture_output=True, text=True,
                              input=json.dumps(self.document), timeout=LIMIT, check=False, **more)

    def fails(self, done, code, pattern):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, pattern)
        self.assertNotIn("Traceback", done.stderr)

    def rows(self):
        done = self.run_it("--csv", "-")
        self.assertEqual(done.stderr, "")
        return list(csv.DictReader(done.stdout.splitlines()))

    def made(self, option, name):
        done = self.run_it(option, self.path(name))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_a_line_has_what_the_document_says(self):
        rows = self.rows()
        self.assertEqual([row["size"] for row in rows], 2 * ["4096", "65536"])
        for row, point in zip(rows, self.document["points"]):
            self.assertEqual(float(row["gigabytes_per_second"]), point["gigabytes_per_second"]["median"])
            self.assertEqual(float(row["p99.9_ns"]), point["latency_ns"]["p99.9"])
            raw = point["baselines"]["raw"]
            self.assertEqual(float(row["raw_p99_low"]), raw["p99_ratio"]["low"])
            self.assertEqual(float(row["memcpy_ratio"]), point["baselines"]["memcpy"]["ratio"]["middle"])
            self.assertNotIn("memcpy_p50_ratio", row)
            self.assertEqual((row["operation"], row["asked_provider"], row["provider"]),
                             ("write", point["point"]["fabric"]["provider"], point["provider"]))
            self.assertEqual((row["priority"], row["one_buffer"], row["verify"]), ("normal", "0", "false"))
            self.assertEqual((row["kernel"], row["initiators"]), (os.uname().release, "1"))
            for fact in ("host", "cpu", "cores", "kernel", "congestion_control", "weft", "libfabric"):
                self.assertTrue(row[fact])
                self.assertEqual(row[fact], row["peer_" + fact])

    def test_what_a_point_lacks_is_empty(self):
        del self.point["baselines"]
        self.point["copies_per_byte"] = None
        self.point["rails"] = {"tcp:0": 0.75, "tcp:1": 0.25}
        self.point["shares"] = {"least": 0.25, "greatest": 0.75}
        row, other, *_ = self.rows()
        self.assertEqual((row["raw_ratio"], row["raw_p50_high"], row["copies_per_byte"]), ("", "", ""))
        self.assertEqual((row["rail_shares"], row["least_share"]), ("tcp:0 0.75 tcp:1 0.25", "0.25"))
        self.assertTrue(other["raw_ratio"])

    def test_the_machines_that_move_bytes(self):
        machines = self.document["machines"]
        machines["initiator"].update(host="a", cpu='8 cores, "fast"')
        machines["targets"] = [{"host": "c", "libfabric": "1.17"}, {"host": "c", "libfabric": "2.0"}]
        row = self.rows()[0]
        self.assertEqual((row["host"], row["cpu"], row["peer_libfabric"]),
                         ("a", '8 cores, "fast"', "1.17 / 2.0"))
        machines["initiators"] = [{"at": "b:1", "machine": {"host": "b"}}]
        for source, hosts in ((["b:1"], "b"), (["here", "b:1"], "a / b")):
            self.document["settings"]["from"] = source
            self.assertEqual(self.rows()[0]["host"], hosts)

    @HAS_GNUPLOT
    def test_pictures(self):
        picture = self.made("--plot", "picture.svg")
        ElementTree.fromstring(picture)
        for text in ("GB/s", "time of an operation", "shm write, window 4", "memcpy", "p99", "64 KiB"):
            self.assertIn(text, picture)
        self.assertNotIn("kiB", picture)
        done = self.run_it("--plot", self.path("picture.png"))
        self.assertEqual(done.stderr, "")
        with open(self.path("picture.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def script(self):
        """What gnuplot is to draw."""
        with open(self.path("gnuplot"), "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\ncat >{self.path('script')}\necho '<svg/>'\n")
        os.chmod(self.path("gnuplot"), 0o700)
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        self.assertEqual(self.run_it("--plot", self.path("x.svg"), env=environment).stderr, "")
        with open(self.path("script"), encoding="utf-8") as file:
            return file.read()

    def test_a_color_means_a_series(self):
        # Black is for what is of all.
        self.assertEqual(len(set(re.findall(r"lc rgb '(.*?)'", self.script()))), 3)
        self.document["points"] = []
        for number in range(24):
            self.point["series"] = f"write, window {number}"
            self.document["points"].append(copy.deepcopy(self.point))
        self.assertEqual(len(set(re.findall(r"lc rgb '(.*?)'", self.script()))), 25)

    def test_nothing_is_cut(self):
        """Error bars end within the axes, also where a run moved nothing."""
        self.document["points"] = [self.point]
        self.point["gigabytes_per_second"] = {"median": 1, "least": 0, "greatest": 900}
        script = self.script()
        self.assertIn("set xtics ('4 KiB' 4096)\nset xrange [2048:8192]", script)
        self.assertIn("4096 1 1 900\n", script)
        self.assertGreater(float(re.search(r"set yrange \[.*:(.*)\]", script).group(1)), 900)

    @HAS_GNUPLOT
    def test_a_picture_of_what_moved_nothing(self):
        self.document["points"] = [self.point]
        del self.point["baselines"]
        self.point["gigabytes_per_second"] = {"median": 0, "least": 0, "greatest": 0}
        self.point["latency_ns"] = dict.fromkeys(self.point["latency_ns"], 0)
        ElementTree.fromstring(self.made("--plot", "picture.svg"))

    @HAS_GNUPLOT
    def test_a_page(self):
        self.point["remarks"] = ["3 BYTES WRONG: </b>"]
        self.document["machines"]["initiator"]["environment"] = {"WEFT_RAILS": "<1>"}
        page = self.made("--html", "page")
        self.assertIn("<svg", page)
        self.assertNotRegex(page, r"(src|href)=.https?:")
        data = re.search(r'id="results">(.*)</script>', page, re.S).group(1)
        self.assertEqual(json.loads(data), self.document)
        self.assertRegex(page, r"<th>date</th><td>20\d\d-\d\d-\d\dT")
        self.assertRegex(page, r"<th>command line</th><td>weft-perf --local .* --json ")
        for text in ("<th>repeats</th><td>2</td>", "<th>warm up seconds</th><td>0</td>",
                     "<th>baselines</th><td>raw, memcpy</td>", "<th>p99 to raw</th>",
                     '<div class="remark">3 BYTES WRONG: &lt;/b&gt;</div>',
                     "<th>initiator, environment, WEFT_RAILS</th><td>&lt;1&gt;</td>",
                     "Ratios: median of the repeats"):
            self.assertIn(text, page)
        self.assertRegex(page, r"<th>initiator, memory</th><td>[\d.]+ GiB</td>")
        self.assertNotIn("{", re.sub(r"(?s)<style>.*</style>|<svg.*</svg>|<script.*</script>", "", page))

    def test_what_is_wrong(self):
        self.fails(self.run_it(), 2, "--csv, --plot and --html")
        self.fails(self.run_it("--plot", "x.jpg"), 2, "'x.jpg' ends neither with .svg nor with .png")
        self.fails(self.run_it("--csv", "a/../x", "--html", "x"), 2, "to be one file")
        self.fails(self.run_it("--csv", self.path("no/x")), 1, "could not write '.*no/x'")
        self.fails(self.run_it("--plot", self.path("x.svg"), env={"PATH": self.folder}), 1,
                   "gnuplot is not installed")
        for key, value, why in (("format", "other", "holds no results"), ("version", 99, "another version")):
            self.document = {**self.measured, key: value}
            self.fails(self.run_it("--csv", "-"), 1, f"^weft-perf-report: - .*{why}")
        self.document = [1]
        self.fails(self.run_it("--csv", "-"), 1, "holds no results")


if __name__ == "__main__":
    unittest.main()
