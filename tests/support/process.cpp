#include "process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "providers/sanitizer.hpp"

extern char** environ;

namespace weft::test {
namespace {

constexpr std::chrono::seconds patience(60);
constexpr std::string_view role_option = "--role=";

std::map<std::string, Role>& roles() {
  static std::map<std::string, Role> entries;
  return entries;
}

bool wait_readable(int descriptor, Deadline deadline) {
  while (true) {
    pollfd waited{descriptor, POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left()).count();
    const int ready = poll(&waited, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

std::size_t count_entries(const char* path) {
  DIR* folder = opendir(path);
  if (folder == nullptr) return 0;
  std::size_t count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(folder);
  return count;
}

void wait_down_to(std::size_t expected, std::size_t (*count)()) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  while (count() > expected && !deadline.passed()) std::this_thread::yield();
}

}  // namespace

bool is_role(int count, char** values) {
  return count > 2 && std::string_view(values[1]).starts_with(role_option);
}

int run_role(int count, char** values) {
  // The parent may have died before this was asked for.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != std::stoi(values[2])) return 1;
  signal(SIGPIPE, SIG_IGN);
  const std::string name(values[1] + role_option.size());
  const auto role = roles().find(name);
  if (role == roles().end()) {
    std::fprintf(stderr, "no role %s\n", name.c_str());
    return 1;
  }
  Line parent(STDIN_FILENO, STDOUT_FILENO);
  try {
    return role->second(parent, {values + 3, values + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "role %s: %s\n", name.c_str(), error.what());
    return 1;
  }
}

RoleEntry::RoleEntry(const std::string& name, Role role) {
  if (roles().emplace(name, std::move(role)).second) return;
  std::fprintf(stderr, "two roles are called %s\n", name.c_str());
  std::abort();
}

std::string Line::hear(Deadline deadline) {
  while (true) {
    if (const auto end = heard_.find('\n'); end != std::string::npos) {
      std::string text = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      // What the other process says may rest on what it moved into this one's memory before.
      providers::handed_over(&providers::every_endpoint);
      return text;
    }
    if (!wait_readable(in_, deadline)) throw std::runtime_error("the other process says nothing");
    char buffer[4096];
    const ssize_t got = read(in_, buffer, sizeof buffer);
    if (got <= 0) throw std::runtime_error("the other process is gone");
    heard_.append(buffer, static_cast<std::size_t>(got));
  }
}

void Line::say(const std::string& text) {
  // And what the other process does after it, by messages to this one, comes after what is done.
  providers::handing_over(&providers::every_endpoint);
  const std::string line = text + '\n';
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t written = write(out_, line.data() + done, line.size() - done);
    if (written < 0) throw std::runtime_error("the other process is gone");
    done += static_cast<std::size_t>(written);
  }
}

Child::Child(const std::string& role, const std::vector<std::string>& arguments) {
  int to_child[2], from_child[2];
  if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  std::vector<std::string> words = {"/proc/self/exe", std::string(role_option) + role,
                                    std::to_string(getpid())};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> values;
  for (std::string& word : words) values.push_back(word.data());
  values.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  const int failed =
      posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, values.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to_child[0]);
  close(from_child[1]);
  out_ = to_child[1];
  in_ = from_child[0];
  if (failed != 0) {
    close(in_);
    close(out_);
    throw std::runtime_error("no process");
  }
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  line_.emplace(in_, out_);
}

Child::~Child() {
  if (!reaped_) kill();
  close(pidfd_);
  close(in_);
  close(out_);
}

std::string Child::hear() {
  return line_->hear(Deadline::in(patience));
}

std::string Child::ask(const std::string& text) {
  say(text);
  return hear();
}

bool Child::ended() const {
  return reaped_ || wait_readable(pidfd_, Deadline::now());
}

void Child::signal(int number) const {
  ::kill(pid_, number);
}

void Child::freeze() const {
  signal(SIGSTOP);
  waitpid(pid_, nullptr, WUNTRACED);
}

void Child::kill() {
  signal(SIGKILL);
  waitpid(pid_, &status_, 0);
  reaped_ = true;
}

int Child::join() {
  if (!wait_readable(pidfd_, Deadline::in(patience)))
    throw std::runtime_error("a child process does not end");
  waitpid(pid_, &status_, 0);
  reaped_ = true;
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
}

std::vector<std::string> regions_of(pid_t process) {
  std::vector<std::string> names;
  DIR* folder = opendir("/dev/shm");
  if (folder == nullptr) return names;
  const std::string middle = "-" + std::to_string(process) + "-";
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name.starts_with("weft-") && name.find(middle, 5) != std::string::npos)
      names.push_back(name);
  }
  closedir(folder);
  return names;
}

std::size_t count_descriptors() {
  return count_entries("/proc/self/fd");
}

std::size_t count_threads() {
  return count_entries("/proc/self/task");
}

std::vector<std::string> threads_down_to(std::size_t expected) {
  wait_down_to(expected, count_threads);
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::getline(file, names.emplace_back());
  }
  return names;
}

std::vector<std::string> descriptors_down_to(std::size_t expected) {
  wait_down_to(expected, count_descriptors);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    names.push_back(std::filesystem::read_symlink(entry.path(), closed).string());
  }
  return names;
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::string to_hex(Bytes bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte each : bytes) {
    text += digits[std::to_integer<unsigned>(each) / 16];
    text += digits[std::to_integer<unsigned>(each) % 16];
  }
  return text;
}

Blob from_hex(const std::string& text) {
  Blob bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace weft::test
