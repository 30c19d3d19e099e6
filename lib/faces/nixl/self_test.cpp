#include "nixl/self_test.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/sync.hpp"
#include "base/system_error.hpp"

namespace weft::nixl {
namespace {

namespace fs = std::filesystem;

// What the script says at its end. Its exit status may be lost to a server that reaps all children.
constexpr std::string_view passed = "the self-test has passed";

/// Arguments: the folder of the wheel, its module, the backend's name, seconds.
constexpr const char* script = R"python(
import os, signal, sys
signal.alarm(int(sys.argv[4]))  # should nobody wait for it any more
os.closerange(3, 4096)  # what a server lets its children have
import site
SITE, MODULE, NAME = sys.argv[1:4]
site.addsitedir(SITE)
sys.path.insert(0, SITE)
import ctypes, importlib, time
BYTES, WORD, NOTE = 65536, b"a word", b"written" * 3000  # the last in parts

class Side:
    def __init__(self, name, fill):
        api = importlib.import_module(MODULE + "._api")
        name = f"weft-self-test-{name}-{os.getpid()}"
        self.agent = api.nixl_agent(name, api.nixl_agent_config(backends=[]))
        self.agent.create_backend(NAME)
        self.buffer = (ctypes.c_ubyte * BYTES)(*(fill(at) % 256 for at in range(BYTES)))
        self.region = (ctypes.addressof(self.buffer), BYTES, 0)
        self.memory = self.agent.register_memory([(*self.region, "")], "DRAM", backends=[NAME])

    def heard(self, sender):
        told = []
        while not told:
            told = self.agent.get_new_notifs().get(sender.agent.name, [])
        return told

def check(what, found, wanted):
    if found != wanted:
        raise ValueError(f"{what}: {found!r:.60} in place of {wanted!r:.60}")

def move(one, other, operation):
    lists = [side.agent.get_xfer_descs([side.region], "DRAM") for side in (one, other)]
    handle = one.agent.initialize_xfer(operation, *lists, other.agent.name, NOTE, backends=[NAME])
    state = one.agent.transfer(handle)
    while state == "PROC":
        time.sleep(0.001)
        state = one.agent.check_xfer_state(handle)
    check(operation, state, "DONE")
    one.agent.release_xfer_handle(handle)
    check("the notification", other.heard(one), [NOTE])
    check("the bytes", bytes(one.buffer), bytes(other.buffer))

def work():
    one, other = Side("one", lambda at: at * 167 + (at >> 8) * 31 + 1), Side("other", lambda at: 7)
    one.agent.add_remote_agent(other.agent.get_agent_metadata())
    move(one, other, "WRITE")
    ctypes.memset(other.buffer, 99, BYTES)
    move(one, other, "READ")
    one.agent.send_notif(other.agent.name, WORD)
    check("the notification", other.heard(one), [WORD])
    one.agent.remove_remote_agent(other.agent.name)
    for side in (one, other):
        side.agent.deregister_memory(side.memory, backends=[NAME])

try:
    work()  # and its agents are gone
except Exception as error:
    sys.exit(f"{type(error).__name__}: {str(error).strip().splitlines()[0]:.200}")
print("the self-test has passed", flush=True)
)python";

/// Of this process, without what is meant for its own engines and its GPUs.
std::vector<std::string> environment() {
  std::vector<std::string> kept = {"WEFT_NIXL_UNCHECKED=1", "WEFT_PROVIDERS=shm,tcp",
                                   "WEFT_LOG=error",
                                   "CUDA_VISIBLE_DEVICES=", "PYTHONDONTWRITEBYTECODE=1"};
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text = *each;
    const bool replaced = text.starts_with("WEFT_") || text.starts_with("NIXL_TELEMETRY") ||
                          text.starts_with("CUDA_VISIBLE_DEVICES=") ||
                          text.starts_with("PYTHONDONTWRITEBYTECODE=");
    if (!replaced) kept.emplace_back(text);
  }
  return kept;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> each;
  for (std::string& word : words) each.push_back(word.data());
  each.push_back(nullptr);
  return each;
}

/// A process of that program, which writes to a pipe.
class Child {
 public:
  static Result<Child> start(std::vector<std::string> words) {
    std::array<int, 2> pipe{};
    if (pipe2(pipe.data(), O_CLOEXEC) != 0)
      return fail(Code::unavailable, fmt::format("no pipe: {}", core::error_text(errno)));
    Child child;
    child.output_ = core::Descriptor(pipe[0]);
    const core::Descriptor input(pipe[1]);
    auto variables = environment();
    posix_spawn_file_actions_t streams;
    posix_spawn_file_actions_init(&streams);
    posix_spawn_file_actions_addopen(&streams, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&streams, input.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&streams, input.get(), STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    const int error = posix_spawn(&child.pid_, words[0].c_str(), &streams, &attributes,
                                  pointers(words).data(), pointers(variables).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&streams);
    if (error != 0)
      return fail(Code::unavailable,
                  fmt::format("{} can't be run: {}", words[0], core::error_text(error)));
    child.process_ = core::open_process(child.pid_);
    return child;
  }
  Child(Child&&) = default;
  Child& operator=(Child&&) = delete;
  /// It does not outlive this. The server may have reaped it already.
  ~Child() {
    if (process_.get() < 0) return;
    syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
    siginfo_t end{};
    waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(process_.get()), &end, WEXITED);
  }

  /// What it writes until it ends; false in the second if it does not by the deadline.
  std::pair<std::string, bool> read(Deadline deadline) const {
    std::string text;
    for (;;) {
      pollfd readable{output_.get(), POLLIN, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left()).count();
      const int ready = poll(&readable, 1, static_cast<int>(left));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return {text, false};
      std::array<char, 4096> bytes;
      const ssize_t count = ::read(output_.get(), bytes.data(), bytes.size());
      if (count <= 0) return {text, true};
      text.append(bytes.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  Child() = default;
  pid_t pid_ = -1;
  core::Descriptor process_, output_;
};

/// The last line that says something.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto begin = text.rfind('\n');
  return begin == text.npos ? text : text.substr(begin + 1);
}

Error refused(const LibNixl& library, const std::string& why) {
  return Error(
      Code::protocol_mismatch,
      fmt::format("this libnixl ({}) is {}, which this Weft does not know, and the self-test "
                  "with it {}: use NIXL 1.5.1. The backend parameter unchecked_nixl=true, "
                  "or WEFT_NIXL_UNCHECKED=1, goes on all the same, at the risk of a crash",
                  library.path, library.version, why));
}

}  // namespace

Result<void> run_self_test(const std::string& python, const LibNixl& library,
                           const std::string& backend, Nanoseconds patience) {
  const std::string folder = fs::path(library.path).parent_path().parent_path().string();
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(patience).count();
  const auto child = Child::start(
      {python, "-I", "-c", script, folder, library.package, backend, std::to_string(seconds)});
  if (!child)
    return fail(Code::unavailable,
                refused(library, "was not begun: " + child.error().message()).message());
  const auto [said, ended] = child->read(Deadline::in(patience));
  if (said.find(passed) != said.npos) return {};
  const std::string last = last_line(said);
  if (!ended) return fail(refused(library, fmt::format("took more than {} s", seconds)));
  return fail(refused(library, last.empty() ? "crashed" : "failed: " + last));
}

Result<void> self_test(const LibNixl& library, const std::string& backend) {
  static core::Mutex& mutex = *new core::Mutex;
  static auto& outcomes = *new std::map<std::string, Result<void>>;
  const core::Lock lock(mutex);
  const auto known = outcomes.find(library.path);
  if (known != outcomes.end()) return known->second;
  std::error_code failed;
  const std::string python = fs::read_symlink("/proc/self/exe", failed).string();
  if (fs::path(python).filename().string().find("python") == std::string::npos)
    return outcomes
        .emplace(library.path,
                 fail(refused(library, "needs a server that is a Python program, not " + python)))
        .first->second;
  const auto begun = Clock::now();
  auto outcome = run_self_test(python, library, backend, self_test_time);
  if (outcome)
    core::log(LogLevel::info,
              "NIXL backend: NIXL {} is new to this Weft; the self-test with it passed in {:.1f} s",
              library.version, std::chrono::duration<double>(Clock::now() - begun).count());
  // What a shortage has kept from beginning is tried again.
  if (!outcome && outcome.error().code() == Code::unavailable) return outcome;
  return outcomes.emplace(library.path, std::move(outcome)).first->second;
}

}  // namespace weft::nixl
