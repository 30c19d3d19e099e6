#include "efa_fabric.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/settings.hpp"

extern char** environ;

namespace weft::efa_sim {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds patience(30);

[[noreturn]] void fail(const std::string& why) {
  throw std::runtime_error(why);
}

/// Own variables, with some of them replaced.
std::vector<std::string> replaced(const std::map<std::string, std::string>& values) {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string text = *each;
    if (!values.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (const auto& [name, value] : values) variables.push_back(name + '=' + value);
  return variables;
}

/// The line that the device prints when it can be used.
std::string read_line(int pipe) {
  std::string text;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (text.find('\n') == std::string::npos) {
    pollfd waited{pipe, POLLIN, 0};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    char buffer[512];
    const bool ready = left > 0ms && poll(&waited, 1, static_cast<int>(left.count())) == 1;
    const ssize_t got = ready ? read(pipe, buffer, sizeof buffer) : 0;
    if (got <= 0) fail("the EFA device does not start");
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text.substr(0, text.find('\n'));
}

/// Starts the device; its output goes to the pipe.
pid_t spawn_device(int pipe, const std::map<std::string, std::string>& variables) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe, STDOUT_FILENO);
  std::vector<std::string> texts = replaced(variables);
  std::vector<char*> pointers;
  for (std::string& each : texts) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  std::string path = WEFT_EFA_FOLDER "/weft-efa-device";
  char* const arguments[] = {path.data(), nullptr};
  pid_t process = -1;
  const int error =
      posix_spawn(&process, path.c_str(), &actions, nullptr, arguments, pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(fmt::format("{}: {}", path, std::strerror(error)));
  return process;
}

std::string own_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

EfaControl::EfaControl(const std::string& socket) : socket_(connect_to(socket.c_str())) {
  if (!socket_) fail(fmt::format("no EFA device at '{}'", socket));
}

EfaControl EfaControl::of_environment() {
  return EfaControl(own_variable(socket_variable));
}

void EfaControl::set(const std::string& settings) {
  Request change = request(Verb::configure);
  if (settings.size() >= sizeof change.text) fail("too many settings");
  settings.copy(change.text, settings.size());
  ask(change);
}

Counters EfaControl::counters() {
  return ask(request(Verb::counters)).counters;
}

Registrations EfaControl::registrations(pid_t process) {
  return ask(request(Verb::registrations, 0, static_cast<std::uint32_t>(process))).registrations;
}

void EfaControl::check_reach() {
  // A host that no test uses.
  const auto reply = greet(socket_.get(), 0xffff);
  if (!reply) fail("the EFA device is gone");
  if (reply->message.error != 0) fail(reply->message.text);
}

Reply EfaControl::ask(Request request) {
  const bool sent = send_message(socket_.get(), request);
  const auto reply = sent ? receive_message<Reply>(socket_.get()) : std::nullopt;
  if (!reply) fail("the EFA device is gone");
  if (reply->message.error != 0) fail(reply->message.text);
  return reply->message;
}

EfaFabric::EfaFabric(const EfaOptions& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("no pipe");
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const std::string nics = options.nic_list.empty() ? nics_text(options.nics) : options.nic_list;
  process_ = spawn_device(write_end.get(), {{"WEFT_EFA_NICS", nics},
                                            {"WEFT_EFA_FAULTS", options.settings},
                                            {"WEFT_EFA_HOSTS", std::to_string(options.hosts)},
                                            {"WEFT_EFA_SEED", std::to_string(options.seed)}});
  write_end = {};
  try {
    socket_ = read_line(read_end.get());
    control_ = std::make_unique<EfaControl>(socket_);
  } catch (const std::exception&) {
    kill(process_, SIGTERM);
    waitpid(process_, nullptr, 0);
    throw;
  }
}

EfaFabric::~EfaFabric() {
  control_.reset();
  kill(process_, SIGTERM);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (waitpid(process_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) kill(process_, SIGKILL);
    std::this_thread::sleep_for(1ms);
  }
}

std::map<std::string, std::string> EfaFabric::environment(int host) const {
  const std::string shim = WEFT_EFA_FOLDER "/libweft-efa-shim.so";
  const std::string preloaded = own_variable("LD_PRELOAD");
  const std::string sanitizer = own_variable("ASAN_OPTIONS");
  const std::string shared = own_variable("FI_EFA_ENABLE_SHM_TRANSFER");
  return {
      {"LD_PRELOAD", preloaded.empty() ? shim : shim + ':' + preloaded},
      {socket_variable, socket_},
      {host_variable, host < 0 ? "" : std::to_string(host)},
      // Where libfabric looks up what sysfs says of NICs.
      {"SYSFS_PATH", (std::filesystem::path(socket_).parent_path() / "sysfs").string()},
      // The address sanitizer wants to be the first library, which the shim is; it holds nothing
      // that the sanitizer would have to replace before.
      // Endpoints of one host would pass the device by.
      {"FI_EFA_ENABLE_SHM_TRANSFER", shared.empty() ? "0" : shared},
      // An endpoint of libfabric 1.17 looks at memory that it has freed when it is closed; filled
      // with something else (as Meson has it), that ends the process.
      {"MALLOC_PERTURB_", "0"},
      {"ASAN_OPTIONS", sanitizer + (sanitizer.empty() ? "" : ":") + "verify_asan_link_order=0"},
  };
}

void EfaFabric::set_environment(int host) const {
  for (const auto& [name, value] : environment(host)) setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace weft::efa_sim
