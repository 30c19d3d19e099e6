#include "common/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <weft/config.hpp>
#include <weft/kv_models.hpp>

namespace weft::tool {
namespace {

constexpr double longest_timeout = 24 * 60 * 60;

/// "host:port" to the host.
std::string host_of(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

}  // namespace

Result<Nanoseconds> parse_seconds(const std::string& text, double least) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  // So that what is no number at all is refused too.
  const bool fits = seconds >= least && seconds <= longest_timeout;
  if (text.empty() || *end != '\0' || !fits)
    return fail(Code::invalid_argument, fmt::format("'{}' is no number of seconds from {} to {}",
                                                    text, least, longest_timeout));
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

CLI::Option* OptionGroup::add(const std::string& name, const std::string& type,
                              const std::string& text,
                              std::function<void(const std::string&)> take) {
  return command_.add_option_function<std::string>(name, take, text)
      ->type_name(type)
      ->group(heading_);
}

CLI::Option* OptionGroup::flag(const std::string& name, bool& target, const std::string& text) {
  return command_.add_flag(name, target, text)->group(heading_);
}

CLI::Option* OptionGroup::text(const std::string& name, std::string& target,
                               const std::string& type, const std::string& text) {
  return command_.add_option(name, target, text)->type_name(type)->group(heading_);
}

CLI::Option* OptionGroup::file(const std::string& name, std::string& target,
                               const std::string& text) {
  return this->text(name, target, "FILE", text);
}

CLI::Option* OptionGroup::list(const std::string& name, std::vector<std::string>& target,
                               const std::string& text) {
  return command_.add_option(name, target, text)
      ->type_name("LIST")
      ->delimiter(',')
      ->group(heading_);
}

CLI::Option* OptionGroup::seconds(const std::string& name, Nanoseconds& target, double least,
                                  const std::string& text) {
  return parsed(
      name, target, [least](const std::string& given) { return parse_seconds(given, least); },
      "SECONDS", text);
}

CLI::Option* OptionGroup::words(const std::string& name, std::string& target,
                                const std::vector<std::string>& known, const std::string& text) {
  return this->text(name, target, fmt::format("{}", fmt::join(known, "|")), text)
      ->check(CLI::IsMember(known).description(""));
}

Result<std::uint64_t> OptionGroup::parse_bounded(const std::string& text, Multiples multiples,
                                                 Bounds bounds) {
  auto number = parse_number(text, multiples);
  if (number && *number < bounds.least)
    return fail(Code::invalid_argument, fmt::format("{} is the least, not {}", bounds.least, text));
  if (number && *number > bounds.greatest)
    return fail(Code::invalid_argument,
                fmt::format("{} is the greatest, not {}", bounds.greatest, text));
  return number;
}

tl::unexpected<Error> OptionGroup::none_of(const std::string& given, const std::string& known) {
  return fail(Code::invalid_argument, fmt::format("'{}' is none of {}", given, known));
}

std::string doc_of(std::string_view option) {
  const auto known = weft::options();
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const OptionInfo& each) { return each.name == option; });
  std::string doc(found == known.end() ? std::string_view() : found->doc);
  std::erase(doc, '`');
  return doc;
}

std::string provider_names() {
  const std::string doc = doc_of("providers");
  const std::size_t begin = doc.find(": ") + 2;  // "Providers to use, best first: "
  return doc.substr(begin, doc.find("; ", begin) - begin);
}

CLI::Option* add_nics(OptionGroup& group, std::vector<std::string>& nics) {
  return group.list("--nics", nics,
                    "NICs to use, best first, by name or pattern; ^NAME forbids one");
}

CLI::Option* add_rail_address(OptionGroup& group, std::string& address) {
  return group.text("--rail-address", address, "IP",
                    "Local IP address whose interface carries the tcp rails; without it, the one "
                    "that leads to the other side");
}

CLI::Option* add_advertise(OptionGroup& group, std::string& address) {
  return group.text("--advertise", address, "HOST[:PORT]",
                    "The address that peers use, where it is not the one of --listen, as with "
                    "0.0.0.0");
}

CLI::Option* add_unauthenticated(OptionGroup& group, bool& allowed) {
  return group.flag("--allow-unauthenticated-network", allowed,
                    "Listen beyond loopback without credentials, although anybody who reaches the "
                    "port may then write to the memory");
}

CLI::Option* add_ready_fd(OptionGroup& group, int& descriptor) {
  return group.number("--ready-fd", descriptor, Multiples::decimal, {},
                      "Write the address and a newline to this open descriptor once listening");
}

Result<void> tell_ready(int descriptor, const std::string& address) {
  if (descriptor < 0) return {};
  const std::string line = address + "\n";
  if (write(descriptor, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return fail(Code::invalid_argument, fmt::format("can't write to descriptor {} (--ready-fd): {}",
                                                    descriptor, std::strerror(errno)));
  close(descriptor);
  return {};
}

CLI::Option* add_metrics(OptionGroup& group, std::string& address) {
  return group.text(
      "--metrics", address, "HOST:PORT|unix:PATH",
      "Hand out metrics over HTTP at this local address, as /metrics for Prometheus and "
      "/snapshot in JSON; port 0: the system chooses, and standard error tells");
}

CLI::Option* add_timeout(OptionGroup& group, Nanoseconds& timeout) {
  return group.seconds("--timeout", timeout, 0.001, "Longest wait for any one step")
      ->default_str(fmt::format("{:g}", std::chrono::duration<double>(timeout).count()));
}

CLI::Option* add_progress(OptionGroup& group, std::string& when) {
  return group
      .words("--progress", when, {"auto", "always", "never"},
             "Show progress on standard error; auto: on a terminal")
      ->default_str(when);
}

std::string known_models() {
  std::vector<std::string_view> names;
  for (const kv::Model& model : kv::models()) names.push_back(model.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

CLI::Validator known_model() {
  return CLI::Validator(
      [](std::string& name) {
        if (kv::find_model(name)) return std::string();
        return fmt::format("there is no model '{}'; there are {}", name, known_models());
      },
      "");
}

std::string complaint_about_listening(const std::string& listen, const std::string& advertise) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (std::all_of(listen.begin(), listen.end(), is_digit))
    return fmt::format(
        "--listen takes HOST:PORT, and '{}' has no host: write 127.0.0.1:{}, or the "
        "address of this machine that peers use",
        listen, listen);
  const std::string host = host_of(listen);
  const bool everywhere = host == "0.0.0.0" || host == "[::]" || host.empty();
  if (!everywhere || !advertise.empty()) return {};
  return "--listen with every interface's address needs --advertise, the address that peers use";
}

}  // namespace weft::tool
