// Completions for shells.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "common/help.hpp"

namespace weft::tool {
namespace {

using Strings = std::vector<std::string>;

std::string joined(const Strings& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

/// An option, or a value that has a place instead of a name, as shells have to know it.
struct Entry {
  std::string name;  ///< "json"; empty: it has a place.
  std::string text;  ///< In a few words.
  bool value = false;
  bool files = false;
  Strings words;  ///< The values that it can have, as far as they are known.
};

/// "auto|always" is what its type says of an option; what is in capitals stands for something.
Strings words_of(const std::string& type) {
  Strings words;
  std::istringstream parts(type);
  const auto literal = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9') || each == '-';
  };
  for (std::string word; std::getline(parts, word, '|');)
    if (std::all_of(word.begin(), word.end(), literal)) words.push_back(word);
  return words;
}

std::string short_text(const std::string& text) {
  return text.substr(0, std::min(text.find("; "), text.find(". ")));
}

std::vector<Entry> entries_of(const CLI::App& program, const CLI::App& command) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : command.get_options()) {
    const auto& names = option->get_lnames();
    const std::string type = option->get_type_name();
    entries.push_back({names.empty() ? "" : names.front(), short_text(option->get_description()),
                       takes_value(*option), type == "FILE" || type == "PATH",
                       type == "COMMAND" ? command_names(program) : words_of(type)});
  }
  return entries;
}

/// All that may be typed where no value is due.
Strings typed(const std::vector<Entry>& entries) {
  Strings words;
  for (const Entry& each : entries)
    if (each.name.empty())
      words.insert(words.end(), each.words.begin(), each.words.end());
    else
      words.push_back("--" + each.name);
  return words;
}

/// Name of a shell's function.
std::string function_of(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return "_" + name;
}

std::string bash_values(const std::string& command, const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& each : entries) {
    if (each.name.empty() || !each.value) continue;
    const std::string reply =
        each.files ? "COMPREPLY=($(compgen -f -- \"$cur\")) "
        : each.words.empty()
            ? ""
            : fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\")) ", joined(each.words));
    text += fmt::format("    '{} --{}') {}; return ;;\n", command, each.name,
                        reply.empty() ? ":" : reply.substr(0, reply.size() - 1));
  }
  return text;
}

std::string bash(const CLI::App& program) {
  const Strings names = command_names(program);
  std::string values = bash_values("", entries_of(program, program)), words;
  Strings first = typed(entries_of(program, program));
  first.insert(first.begin(), names.begin(), names.end());
  for (const CLI::App* each : commands_of(program)) {
    const auto entries = entries_of(program, *each);
    values += bash_values(each->get_name(), entries);
    words += fmt::format("    {}) words='{}' ;;\n", each->get_name(), joined(typed(entries)));
  }
  return fmt::format(R"(# Completions of {0} for bash.
{1}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} command= word words
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $word in
      {2}) command=$word; break ;;
    esac
  done
  case "$command ${{COMP_WORDS[COMP_CWORD-1]}}" in
{3}  esac
  case $command in
{4}    *) words='{5}' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -F {1} {0}
)",
                     program.get_name(), function_of(program.get_name()),
                     fmt::format("{}", fmt::join(names, "|")), values, words, joined(first));
}

/// Between single quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char each : text) out += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return out + "'";
}

std::string zsh_spec(const Entry& entry) {
  std::string text;
  for (const char each : entry.text) {
    if (each == '[' || each == ']' || each == ':' || each == '\\') text += '\\';
    text += each;
  }
  const std::string values = entry.files           ? "_files"
                             : entry.words.empty() ? " "
                                                   : fmt::format("({})", joined(entry.words));
  if (entry.name.empty()) return quoted(fmt::format("1:{}:{}", text, values));
  if (!entry.value) return quoted(fmt::format("--{}[{}]", entry.name, text));
  return quoted(fmt::format("--{}=[{}]:value:{}", entry.name, text, values));
}

std::string zsh_specs(const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& each : entries) text += " \\\n        " + zsh_spec(each);
  return text;
}

std::string zsh(const CLI::App& program) {
  std::string commands, cases;
  for (const CLI::App* each : commands_of(program)) {
    commands += fmt::format("\n        {}",
                            quoted(each->get_name() + ":" + short_text(each->get_description())));
    cases += fmt::format("    {}) _arguments{} ;;\n", each->get_name(),
                         zsh_specs(entries_of(program, *each)));
  }
  return fmt::format(R"(#compdef {0}
# Completions of {0} for zsh.
{1}() {{
  local curcontext=$curcontext state line
  local -a commands
  _arguments -C{2} \
        '1: :->command' '*:: :->arguments'
  case $state in
    command)
      commands=({3})
      _describe command commands
      return ;;
    arguments) ;;
    *) return ;;
  esac
  case $words[1] in
{4}  esac
}}
if [ "$funcstack[1]" = "{1}" ]; then {1} "$@"; else compdef {1} {0}; fi
)",
                     program.get_name(), function_of(program.get_name()),
                     zsh_specs(entries_of(program, program)), commands, cases);
}

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char each : text) {
    if (each == '\'' || each == '\\') out += '\\';
    out += each;
  }
  return out + "'";
}

std::string fish_lines(const std::string& program, const std::string& condition,
                       const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& each : entries) {
    std::string line = fmt::format("complete -c {} -n {}", program, fish_quoted(condition));
    if (!each.name.empty()) line += " -l " + each.name;
    if (!each.name.empty() && each.value) line += " -r";
    if (each.files) line += " -F";
    if (!each.words.empty()) line += " -a " + fish_quoted(joined(each.words));
    text += line + " -d " + fish_quoted(each.text) + "\n";
  }
  return text;
}

std::string fish(const CLI::App& program) {
  const std::string name = program.get_name();
  const std::string first = "__fish_use_subcommand";
  std::string text = fmt::format("# Completions of {0} for fish.\ncomplete -c {0} -f\n", name);
  text += fish_lines(name, first, entries_of(program, program));
  for (const CLI::App* each : commands_of(program)) {
    text += fmt::format("complete -c {} -n {} -a {} -d {}\n", name, first, each->get_name(),
                        fish_quoted(short_text(each->get_description())));
    text += fish_lines(name, "__fish_seen_subcommand_from " + each->get_name(),
                       entries_of(program, *each));
  }
  return text;
}

}  // namespace

std::string completion(const CLI::App& program, const std::string& shell) {
  if (shell == "bash") return bash(program);
  return shell == "zsh" ? zsh(program) : fish(program);
}

}  // namespace weft::tool
