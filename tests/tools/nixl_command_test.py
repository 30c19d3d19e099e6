"""weft nixl from outside: a made-up folder of Python packages with wheels of NIXL, whose plug-ins
are files of text, and a copy of the command that lies where a build or an installation has it.

Usage: nixl_command_test.py WEFT COMMANDS LIBRARIES [unittest arguments]

COMMANDS and LIBRARIES are the folders into which the build installs.
"""

import fcntl
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from programs import PATIENCE, Program, is_running  # noqa: E402

WEFT, COMMANDS, LIBRARIES = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
# How long to wait for what does not come: the next, where a busy machine has not come so far.
SECONDS = ("1", "4", "15", "40")
# Of which a machine has some, for strace.
CHANGING_CALLS = ("?symlink,?symlinkat", "?rename,?renameat,?renameat2", "?unlink,?unlinkat")


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def command_in(folder):
    """The command, and beside its folder what it is linked with."""
    os.makedirs(folder)
    shutil.copy(WEFT, folder)
    libraries = os.path.join(folder, "..", "lib")
    os.makedirs(libraries, exist_ok=True)
    for each in glob.glob(os.path.join(os.path.dirname(WEFT), "..", "lib", "libweft.so*")):
        os.symlink(os.path.abspath(each), os.path.join(libraries, os.path.basename(each)))
    return os.path.join(folder, "weft")


def contents(folder):
    """What each file holds, and where each link leads."""
    def content(path):
        return "-> " + os.readlink(path) if os.path.islink(path) else read(path)
    return {name: content(os.path.join(folder, name)) for name in os.listdir(folder)}


def why_untraced():
    """Why processes can't be traced here; empty if they can."""
    if shutil.which("strace") is None:
        return "there is no strace"
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True,
                           timeout=PATIENCE, check=False)
    return f"strace can't: {tried.stderr.strip()}" if tried.returncode != 0 else ""


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.weft = command_in(os.path.join(cls.root, "build", "tools"))
        cls.plugin = write(os.path.join(cls.root, "build", "lib", "faces", "nixl", "libplugin_WEFT.so"),
                           "Weft's")

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=self.root)
        self.site = os.path.join(self.folder, "site")
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("NIXL_", "PYTHON", "STAND_IN", "VIRTUAL_ENV"))}
        self.environment.update(PYTHONPATH=self.site, PYTHONDONTWRITEBYTECODE="1")
        self.plugins = self.wheel("nixl_cu12")
        self.before = contents(self.plugins)

    def path(self, name):
        return os.path.join(self.folder, name)

    def in_plugins(self, name):
        return os.path.join(self.plugins, name)

    def distribution(self, name, version):
        write(os.path.join(self.site, f"{name}-{version}.dist-info", "METADATA"),
              f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n")

    def wheel(self, module, version="1.5.1"):
        """Its folder of plug-ins."""
        self.distribution(module, version)
        write(os.path.join(self.site, module, "__init__.py"), "")
        shutil.copy(os.path.join(HERE, "nixl_stand_in.py"),
                    os.path.join(self.site, module, "_api.py"))
        folder = os.path.join(self.site, f".{module}.mesonpy.libs", "plugins")
        for name in ("UCX", "POSIX"):
            write(os.path.join(folder, f"libplugin_{name}.so"), f"the wheel's {name}")
        return folder

    def package_nixl(self, takes):
        self.distribution("nixl", "1.5.1")
        write(os.path.join(self.site, "nixl", "__init__.py"), f"from {takes} import _api\n")

    def script(self, name, text):
        return write(self.path(name), "#!/bin/sh\n" + text + "\n", 0o755)

    def nixl(self, *arguments, python=sys.executable, weft=None, **environment):
        given = ["--python", python] if python else []
        return Program(weft or self.weft).run("nixl", *arguments, *given,
                                              env={**self.environment, **environment})

    def works(self, *arguments, **more):
        result = self.nixl(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        return result

    def report(self, *arguments, code=0, **more):
        result = self.nixl(*arguments, "--json", "--quiet", **more)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def fails(self, result, pattern, code=1):
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        self.assertRegex(result.stderr, r"\Aweft nixl: .+\n\Z")
        self.assertRegex(result.stderr, pattern)

    def changes(self, *arguments, **more):
        wheel, = self.report(*arguments, **more)["wheels"]
        return {each["name"]: each["change"] for each in wheel["changes"]}

    def is_as_before(self):
        self.assertEqual(contents(self.plugins), self.before)


class Install(Case):
    def linked(self, plugin=None):
        return {**self.before, "libplugin_WEFT.so": "-> " + (plugin or self.plugin)}

    def test_there_and_back(self):
        self.assertIn("now leads to " + self.plugin, self.works("install").stdout)
        self.assertEqual(contents(self.plugins), self.linked())
        self.assertIn("already", self.works("install").stdout)
        self.assertEqual(contents(self.plugins), self.linked())
        self.assertIn("libplugin_WEFT.so is removed", self.works("uninstall").stdout)
        self.is_as_before()
        self.assertIn("nothing of Weft's was there", self.works("uninstall").stdout)
        self.is_as_before()

    def test_json(self):
        report = self.report("install")
        self.assertEqual((report["command"], report["action"]), ("nixl", "install"))
        self.assertEqual(report["python"]["executable"], sys.executable)
        self.assertEqual(report["warnings"], [])
        wheel, = report["wheels"]
        self.assertEqual((wheel["package"], wheel["version"], wheel["checked"], wheel["folder"]),
                         ("nixl-cu12", "1.5.1", True, self.plugins))
        self.assertEqual(wheel["changes"], [{
            "name": "WEFT", "path": self.in_plugins("libplugin_WEFT.so"), "target": self.plugin,
            "change": "linked", "before": None, "kept": None}])
        self.assertEqual(self.changes("install"), {"WEFT": "linked_already"})
        self.assertEqual(self.changes("uninstall"), {"WEFT": "removed"})
        self.assertEqual(self.changes("uninstall"), {})
        self.assertEqual(self.changes("uninstall", "--as", "UCX"), {"UCX": "nothing"})
        self.is_as_before()

    def test_where_it_is_installed(self):
        weft = command_in(self.path("prefix/bin"))
        self.fails(self.nixl("install", weft=weft), "-Dnixl=disabled.*neither .* nor ")
        self.is_as_before()
        libraries = os.path.join(self.path("prefix/bin"), os.path.relpath(LIBRARIES, COMMANDS))
        plugin = write(os.path.normpath(os.path.join(libraries, "weft", "libplugin_WEFT.so")), "x")
        self.works("install", weft=weft)
        self.assertEqual(contents(self.plugins), self.linked(plugin))

    def test_link_to_another_of_ours(self):
        for other in (self.path("gone/libplugin_WEFT.so"),
                      write(self.path("libplugin_WEFT.so"), "")):
            os.symlink(other, self.in_plugins("libplugin_WEFT.so"))
            self.assertIn(f"now leads to {self.plugin}; before, to {other}",
                          self.works("install").stdout)
            self.assertEqual(contents(self.plugins), self.linked())
            self.works("uninstall")
            self.is_as_before()

    def stays(self):
        kept = contents(self.plugins)
        self.fails(self.nixl("install"), "libplugin_WEFT.so' is there and not Weft's")
        self.assertEqual(self.report("install", code=1)["code"], "unavailable")
        self.assertIn("nothing of Weft's", self.works("uninstall").stdout)
        self.assertEqual(contents(self.plugins), kept)

    def test_file_of_others(self):
        write(self.in_plugins("libplugin_WEFT.so"), "somebody's")
        self.stays()

    def test_link_of_others(self):
        for target in ("/opt/other.so", "libplugin_WEFT.so", "libplugin_UCX.so"):
            os.symlink(target, self.in_plugins("libplugin_WEFT.so"))
            self.stays()
            os.unlink(self.in_plugins("libplugin_WEFT.so"))

    def test_both_wheels(self):
        other = self.wheel("nixl_cu13")
        self.assertEqual([each["package"] for each in self.report("install")["wheels"]],
                         ["nixl-cu12", "nixl-cu13"])
        for folder in (self.plugins, other):
            self.assertEqual(os.readlink(os.path.join(folder, "libplugin_WEFT.so")), self.plugin)
        self.works("uninstall")
        self.assertEqual((contents(self.plugins), contents(other)), (self.before, self.before))

    def test_one_of_both_fails(self):
        other = self.wheel("nixl_cu13")
        write(self.in_plugins("libplugin_WEFT.so"), "somebody's")
        result = self.nixl("install")
        self.fails(result, "nixl_cu12.*not Weft's")
        self.assertIn("now leads to " + self.plugin, result.stdout)
        self.assertEqual(os.readlink(os.path.join(other, "libplugin_WEFT.so")), self.plugin)

    def test_version_that_was_not_checked(self):
        os.rename(os.path.join(self.site, "nixl_cu12-1.5.1.dist-info"), self.path("old"))
        self.distribution("nixl_cu12", "1.9.0")
        result = self.works("install")
        self.assertIn("1.9.0, which Weft was not checked with", result.stdout)
        self.assertRegex(result.stderr, r"\Aweft nixl: .*1\.9\.0.*WEFT_NIXL_UNCHECKED=1.*\n\Z")

    @unittest.skipUnless(os.path.isdir("/sys/kernel"), "sysfs is not mounted")
    def test_no_permission(self):
        # Where not even root may write.
        shutil.rmtree(self.plugins)
        os.symlink("/sys/kernel", self.plugins)
        result = self.nixl("install")
        self.fails(result, "could not change '.*libplugin_WEFT.so': "
                           "(Read-only file system|Operation not permitted|Permission denied)")
        self.assertEqual(self.report("install", code=1)["code"], "permission_denied")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_folder_that_is_read_only(self):
        self.works("install")
        linked = contents(self.plugins)
        os.chmod(self.plugins, 0o555)
        self.addCleanup(os.chmod, self.plugins, 0o755)
        for arguments in (["install", "--as", "UCX"], ["uninstall"]):
            self.fails(self.nixl(*arguments), "could not change '.*': Permission denied")
        self.assertEqual(contents(self.plugins), linked)

    def test_only_one_at_a_time(self):
        folder = os.open(self.plugins, os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        self.fails(self.nixl("install", "--as", "UCX"), "another weft nixl is at work")
        self.fails(self.nixl("uninstall", "--as", "UCX"), "another weft nixl is at work")
        self.is_as_before()


class As(Case):
    def setUp(self):
        super().setUp()
        self.taken = {**self.before, "libplugin_UCX.so": "-> " + self.plugin,
                      "libplugin_UCX.so.weft-kept": "the wheel's UCX"}

    def is_taken(self):
        self.assertEqual(contents(self.plugins), self.taken)

    def test_there_and_back(self):
        for back in (["--as", "UCX"], []):
            result = self.works("install", "--as", "UCX")
            self.assertRegex(result.stderr, r"\Aweft nixl: .*FOR UCX GETS WEFT.*--as UCX.*\n\Z")
            self.assertIn("the wheel's own is kept as libplugin_UCX.so.weft-kept", result.stdout)
            self.is_taken()
            self.assertEqual(self.changes("install", "--as", "UCX"), {"UCX": "linked_already"})
            self.is_taken()
            result = self.works("uninstall", *back)
            self.assertIn("libplugin_UCX.so is the wheel's own again", result.stdout)
            self.is_as_before()

    def test_json(self):
        report = self.report("install", "--as", "UCX")
        self.assertRegex(report["warnings"][0], "FOR UCX GETS WEFT")
        change, = report["wheels"][0]["changes"]
        self.assertEqual((change["change"], change["kept"]),
                         ("took_name", self.in_plugins("libplugin_UCX.so.weft-kept")))

    def test_beside_its_own_name(self):
        self.works("install")
        self.works("install", "--as", "UCX")
        self.works("install", "--as", "POSIX")
        self.assertEqual(self.changes("uninstall", "--as", "UCX"), {"UCX": "given_back"})
        self.assertEqual(os.readlink(self.in_plugins("libplugin_POSIX.so")), self.plugin)
        self.assertEqual(self.changes("uninstall"), {"POSIX": "given_back", "WEFT": "removed"})
        self.is_as_before()

    def test_link_of_the_wheel_s_own(self):
        # Some installers put links into a store in place of files.
        os.unlink(self.in_plugins("libplugin_UCX.so"))
        os.symlink("/store/libplugin_UCX.so", self.in_plugins("libplugin_UCX.so"))
        before = contents(self.plugins)
        self.assertEqual(self.changes("install", "--as", "UCX"), {"UCX": "took_name"})
        self.works("uninstall")
        self.assertEqual(contents(self.plugins), before)

    def test_link_to_another_of_ours(self):
        self.works("install", "--as", "UCX")
        os.unlink(self.in_plugins("libplugin_UCX.so"))
        os.symlink("/gone/libplugin_WEFT.so", self.in_plugins("libplugin_UCX.so"))
        self.assertEqual(self.changes("install", "--as", "UCX"), {"UCX": "led_elsewhere"})
        self.is_taken()

    def interrupted(self):
        os.rename(self.in_plugins("libplugin_UCX.so"),
                  self.in_plugins("libplugin_UCX.so.weft-kept"))
        os.symlink(self.plugin, self.in_plugins("libplugin_UCX.so.weft-new"))

    def test_interrupted_and_done_again(self):
        self.interrupted()
        self.assertEqual(self.changes("install", "--as", "UCX"), {"UCX": "completed"})
        self.is_taken()

    def test_interrupted_and_taken_back(self):
        for back in (["--as", "UCX"], []):
            self.interrupted()
            self.assertEqual(self.changes("uninstall", *back), {"UCX": "given_back"})
            self.is_as_before()

    @unittest.skipIf(why_untraced(), why_untraced())
    def test_killed_at_each_step(self):
        for then, end in ((["install", "--as", "UCX"], self.taken), (["uninstall"], self.before)):
            steps = sum(self.killed_before_each(calls, then, end) for calls in CHANGING_CALLS)
            self.assertEqual(steps, 3)

    @unittest.skipIf(why_untraced(), why_untraced())
    def test_killed_while_it_is_taken_back(self):
        self.works("install", "--as", "UCX")
        self.assertTrue(self.killed_before(CHANGING_CALLS[1], 1, "uninstall"))
        self.is_taken()
        self.assertFalse(self.killed_before(CHANGING_CALLS[1], 2, "uninstall"))
        self.is_as_before()

    def killed_before_each(self, calls, then, end):
        """The number of such calls that an installation makes, which leaves nothing of itself."""
        number = 1
        while self.killed_before(calls, number, "install", "--as", "UCX"):
            number += 1
            self.works(*then)
            self.assertEqual(contents(self.plugins), end)
            self.works("uninstall")
            self.is_as_before()
        self.is_taken()
        self.works("uninstall")
        return number - 1

    def killed_before(self, calls, number, *arguments):
        """False if there are fewer calls. The wheel's file is there in any case."""
        result = subprocess.run(
            ["strace", "-o", "/dev/null", "-e", "trace=" + calls,
             "-e", f"inject={calls}:signal=KILL:when={number}",
             self.weft, "nixl", *arguments, "--python", sys.executable],
            capture_output=True, text=True, timeout=PATIENCE, env=self.environment, check=False)
        self.assertIn(result.returncode, (0, -signal.SIGKILL), result.stderr)
        self.assertEqual(list(contents(self.plugins).values()).count("the wheel's UCX"), 1)
        return result.returncode != 0

    def test_wheel_that_was_installed_anew(self):
        self.works("install", "--as", "UCX")
        os.unlink(self.in_plugins("libplugin_UCX.so"))
        write(self.in_plugins("libplugin_UCX.so"), "the next wheel's UCX")
        renewed = contents(self.plugins)
        for arguments in (["install", "--as", "UCX"], ["uninstall", "--as", "UCX"], ["uninstall"]):
            self.fails(self.nixl(*arguments), "weft-kept' too.*earlier installation.*remove")
            self.assertEqual(contents(self.plugins), renewed)
        os.unlink(self.in_plugins("libplugin_UCX.so.weft-kept"))
        self.assertEqual(self.changes("install", "--as", "UCX"), {"UCX": "took_name"})

    def test_no_such_name(self):
        self.works("install")
        self.fails(self.nixl("install", "--as", "LIBFABRIC"),
                   "no plug-in LIBFABRIC .* but POSIX, UCX$")

    def test_what_is_no_plugin(self):
        os.mkdir(self.in_plugins("libplugin_DIR.so"))
        self.fails(self.nixl("install", "--as", "DIR"), "not Weft's: it stays")


class Python(Case):
    def test_of_a_virtual_environment(self):
        python = self.script("venv/bin/python", f'exec {sys.executable} "$@"')
        self.works("install", python=self.path("venv"))
        self.works("uninstall", python=python)
        self.works("install", python=None, VIRTUAL_ENV=self.path("venv"))
        self.fails(self.nixl("install", python=self.site), "no virtual environment")
        self.fails(self.nixl("install", python=None, VIRTUAL_ENV=self.site), "no virtual")

    def test_of_path(self):
        self.script("bin/python3", f'exec {sys.executable} "$@"')
        self.works("install", python=None, PATH=self.path("bin") + ":/bin")
        self.fails(self.nixl("install", python=None, PATH=self.site), "no program 'python3'")

    def test_that_sets_things_itself(self):
        self.environment["PYTHONPATH"] = ""
        python = self.script("python", f'PYTHONPATH={self.site} exec {sys.executable} "$@"')
        self.works("install", python=python)
        self.assertTrue(self.report("status", python=python)["usable"])

    def test_without_a_wheel(self):
        for arguments in (["install"], ["status"], ["uninstall"]):
            result = self.nixl(*arguments, PYTHONPATH="")
            self.fails(result, "has no wheel of NIXL: neither nixl-cu12 nor nixl-cu13")
        self.assertEqual(self.report("status", code=1, PYTHONPATH="")["code"], "not_found")

    def test_wheel_without_plugins(self):
        shutil.rmtree(self.plugins)
        self.fails(self.nixl("install"), "nixl-cu12 1.5.1 has no folder of plug-ins")

    def test_that_hangs(self):
        pid = self.path("pid")
        python = self.script("python", f"echo $$ > {pid}; sleep 1000")
        for seconds in SECONDS:
            result = self.nixl("install", "--timeout", seconds, python=python)
            self.fails(result, f"was not done after {seconds} seconds")
            if os.path.exists(pid):
                break
        self.assertFalse(is_running(int(read(pid))))

    def test_that_is_interrupted(self):
        new, pid = self.path("new"), self.path("pid")
        python = self.script("python", f"echo $$ > {new}; mv {new} {pid}; exec sleep 1000")
        with Program(self.weft).started("nixl", "status", "--python", python) as process:
            while not os.path.exists(pid):
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(PATIENCE), 130)
        self.assertFalse(is_running(int(read(pid))))

    def test_that_fails(self):
        for text, pattern in (("echo first >&2; echo 'no \033 luck' >&2; exit 3",
                               r"could not ask .*: no \\x1b luck$"),
                              ("exit 3", "could not ask .*: it ended with exit code 3"),
                              ("kill -9 $$", r"could not ask .*: it was killed by signal 9"),
                              ("echo '{\"wheels\": 1'", "could not ask .*: it printed no answer")):
            self.fails(self.nixl("install", python=self.script("python", text)), pattern)
        self.fails(self.nixl("install", python=self.path("none")), "no program '.*none'")
        self.fails(self.nixl("install", python=write(self.path("text"), "x")), "Permission denied")

    def test_that_writes_without_end(self):
        self.fails(self.nixl("install", python=self.script("python", "exec yes")),
                   "has written more than")

    def test_modules_of_the_folder_at_hand(self):
        write(self.path("here/json.py"), "raise SystemExit('shadowed')")
        write(self.path("here/nixl_cu12/_api.py"), "raise SystemExit('shadowed')")
        self.works("install")
        result = subprocess.run([self.weft, "nixl", "status", "--python", sys.executable],
                                cwd=self.path("here"), env=self.environment, capture_output=True,
                                text=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)


class Status(Case):
    def setUp(self):
        super().setUp()
        self.package_nixl("nixl_cu12")

    def opened(self, code=0, **more):
        wheel, = self.report("status", code=code, **more)["wheels"]
        return {each["name"]: each for each in wheel["opened"]}

    def test_usable(self):
        self.works("install")
        self.works("install", "--as", "UCX")
        report = self.report("status")
        self.assertTrue(report["usable"])
        self.assertIsNone(report["why_not"])
        self.assertEqual((report["plugin"], report["takes"]), (self.plugin, "nixl_cu12"))
        wheel, = report["wheels"]
        self.assertEqual([(each["name"], each["state"], each["target"], each["kept"])
                          for each in wheel["links"]],
                         [("UCX", "linked", self.plugin,
                           self.in_plugins("libplugin_UCX.so.weft-kept")),
                          ("WEFT", "linked", self.plugin, None)])
        for opened, name in zip(wheel["opened"], ("UCX", "WEFT")):
            self.assertEqual((opened["name"], opened["bytes"], opened["wrong"], opened["problem"]),
                             (name, 4096, 0, None))
            self.assertEqual(opened["memory"], ["DRAM_SEG"])
            self.assertEqual(opened["plugins"], ["POSIX", "UCX", "WEFT"])
            self.assertEqual(opened["loaded"], [self.plugin])
            self.assertIn("what a library prints to standard output", opened["log"])

    def test_text(self):
        self.works("install")
        text = self.works("status").stdout
        for word in (self.plugin, "1.5.1, which takes nixl_cu12", "which Weft was checked with",
                     self.plugins, "WEFT: memory DRAM_SEG; 4096 bytes written and compared",
                     "\nusable\n"):
            self.assertIn(word, text)

    def test_not_linked(self):
        result = self.nixl("status")
        self.fails(result, "not usable: nixl-cu12 1.5.1: no link leads .*weft nixl install")
        self.assertIn("is not linked", result.stdout)
        self.assertNotIn("\nusable", result.stdout)
        self.assertEqual(self.opened(code=1), {})

    def test_dangling(self):
        os.symlink("/gone/libplugin_WEFT.so", self.in_plugins("libplugin_WEFT.so"))
        result = self.nixl("status")
        self.fails(result, "not usable: .*WEFT: FileNotFoundError")
        self.assertIn("leads to /gone/libplugin_WEFT.so, which is not there", result.stdout)
        self.assertEqual(self.report("status", code=1)["wheels"][0]["links"][0]["state"],
                         "dangling")

    def test_interrupted(self):
        self.works("install")
        os.rename(self.in_plugins("libplugin_UCX.so"),
                  self.in_plugins("libplugin_UCX.so.weft-kept"))
        result = self.nixl("status")
        self.fails(result, "name UCX was interrupted")
        self.assertIn("an installation was interrupted", result.stdout)

    def test_wheel_that_was_installed_anew(self):
        self.works("install")
        write(self.in_plugins("libplugin_UCX.so.weft-kept"), "an older one")
        self.assertIn("installed anew", self.works("status").stdout)

    def test_faults(self):
        self.works("install")
        for fault, problem in (
                ("import nixl_cu12", "ImportError: no libcudart while loading NIXL"),
                ("refuse", "RuntimeError: NIXL_ERR_BACKEND while opening the backend"),
                ("kill", r"the process was killed by signal 9 \(Killed\) while opening"),
                ("other file", "NIXL has loaded another file than Weft's"),
                ("error", "RuntimeError: the write ended as ERR while writing"),
                ("wrong byte", "1 of 4096 bytes are wrong after a write"),
                ("exit", "the process ended with exit code 7 while writing")):
            with self.subTest(fault):
                self.fails(self.nixl("status", STAND_IN_FAULT=fault), "not usable: .*" + problem)
                opened = self.opened(code=1, STAND_IN_FAULT=fault)["WEFT"]
                self.assertRegex(opened["problem"], problem)

    def test_log_of_a_failure(self):
        self.works("install")
        result = self.nixl("status", STAND_IN_FAULT="refuse")
        self.assertIn("| weft error: no EFA here\n", result.stdout)

    def test_what_takes_too_long(self):
        self.works("install")
        for fault, doing in (("hang", "opening the backend"), ("stuck", "writing")):
            for seconds in SECONDS:
                result = self.nixl("status", "--timeout", seconds, STAND_IN_FAULT=fault)
                self.assertEqual(result.returncode, 1)
                if f"was not done after {seconds} seconds while {doing}" in result.stderr:
                    break
            self.fails(result, f"the process was not done after .* seconds while {doing}")

    def test_wheel_that_nixl_takes_counts(self):
        self.wheel("nixl_cu13")
        self.works("install")
        for takes, other in (("nixl_cu12", "nixl_cu13"), ("nixl_cu13", "nixl_cu12")):
            self.package_nixl(takes)
            report = self.report("status", STAND_IN_FAULT="import " + other)
            self.assertEqual(report["takes"], takes)
            report = self.report("status", code=1, STAND_IN_FAULT="import " + takes)
            self.assertIsNone(report["takes"])
            self.assertEqual(report["import_problem"], "ImportError: no libcudart")
        self.package_nixl("nixl_cu14")
        result = self.nixl("status")
        self.assertIn("can't be imported here: ModuleNotFoundError", result.stdout)

    def test_nixl_takes_what_is_unknown(self):
        self.works("install")
        shutil.copytree(os.path.join(self.site, "nixl_cu12"), os.path.join(self.site, "nixl_rocm"))
        self.package_nixl("nixl_rocm")
        self.fails(self.nixl("status"), "nixl takes nixl_rocm, which this Weft can't link")

    def test_without_the_package_nixl_all_wheels_count(self):
        shutil.rmtree(os.path.join(self.site, "nixl-1.5.1.dist-info"))
        self.wheel("nixl_cu13")
        self.works("install")
        self.assertIn("the package nixl, which takes a wheel, is not installed",
                      self.works("status").stdout)
        for broken in ("nixl_cu12", "nixl_cu13"):
            self.fails(self.nixl("status", STAND_IN_FAULT="import " + broken), "no libcudart")

    def test_folder_of_plugins_that_is_named(self):
        elsewhere = self.path("elsewhere")
        os.mkdir(elsewhere)
        more = {"NIXL_PLUGIN_DIR": elsewhere}
        self.works("install")
        self.fails(self.nixl("status", **more), "NIXL has no plug-in WEFT in its list")
        os.symlink(self.plugin, os.path.join(elsewhere, "libplugin_WEFT.so"))
        self.works("uninstall")
        self.assertIn(f"looks for plug-ins in {elsewhere} and nowhere else",
                      self.works("status", **more).stdout)
        self.assertEqual(self.opened(**more)["WEFT"]["plugins"], ["WEFT"])


class Mistakes(Case):
    def test_usage(self):
        for arguments, pattern in (
                ([], "action is required"),
                (["bogus"], "'bogus' is none of install, status, uninstall"),
                (["status", "--as", "UCX"], "--as: status opens each"),
                (["install", "--as", "WEFT"], "without --as"),
                (["install", "--as", "../x"], "'../x' is no backend's name"),
                (["install", "--as", ""], "--as"),
                (["install", "--timeout", "0"], "--timeout")):
            self.fails(self.nixl(*arguments), pattern, code=2)
            result = self.nixl(*arguments, "--json")
            self.assertEqual(json.loads(result.stdout)["code"], "invalid_argument")
        self.is_as_before()

    def test_help(self):
        result = Program(self.weft).run("nixl", "--help")
        self.assertEqual(result.returncode, 0)
        for word in ("install|status|uninstall", "--python", "--as", "Examples:"):
            self.assertIn(word, result.stdout)


if __name__ == "__main__":
    unittest.main()
