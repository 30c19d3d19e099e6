#include "common/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "common/layout.hpp"
#include "common/misspelt.hpp"

namespace weft::tool {
namespace {

constexpr std::size_t left_column = 34;
constexpr std::size_t widest = 100;  // Longer lines are hard to read.

std::size_t width() {
  return std::min(line_width(), widest);
}

/// A name and what it means, side by side where there is room.
std::string entry(const std::string& name, const std::string& text) {
  const std::string left = "  " + name;
  const std::size_t columns = std::min(left_column, width() / 3);
  const std::string blank(columns, ' ');
  if (text.empty()) return left + "\n";
  if (left.size() + 2 > columns) return left + "\n" + hanging(blank, text, width());
  return hanging(left + blank.substr(left.size()), text, width());
}

/// One empty line between parts.
class WrappedHelp : public CLI::Formatter {
 public:
  WrappedHelp() { label("SUBCOMMAND", "COMMAND"); }
  std::string make_usage(const CLI::App* command, std::string name) const override {
    return CLI::Formatter::make_usage(command, std::move(name)) + "\n";
  }
  std::string make_positionals(const CLI::App* command) const override {
    const std::string text = CLI::Formatter::make_positionals(command);
    return text.empty() ? text : text + "\n";
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    std::string text = group + ":\n";
    for (const CLI::Option* option : options) text += make_option(option, is_positional);
    return text;
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = make_option_name(option, is_positional);
    if (takes_value(*option) && !option->get_type_name().empty())
      name += " " + option->get_type_name();
    return entry(name, option_text(*option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* command) const override {
    return hanging("", command->get_description(), width());
  }
};

}  // namespace

void use_wrapped_help(CLI::App& app) {
  app.formatter(std::make_shared<WrappedHelp>());
}

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* each : commands_of(program)) names.push_back(each->get_name());
  return names;
}

std::string option_text(const CLI::Option& option) {
  std::string text = option.get_description();
  if (option.get_required()) text += " (required)";
  if (!option.get_default_str().empty())
    text += fmt::format(" (default: {})", option.get_default_str());
  return text;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

HelpCommands::HelpCommands(CLI::App& program)
    : program_(program),
      help_(program.add_subcommand("help", "Shows what a command does, and its options.")),
      completion_(program.add_subcommand("completion", "Prints a shell's completions.")) {
  help_->add_option("command", command_, "The command; without it, all in short")
      ->type_name("COMMAND")
      ->check(CLI::Validator(
          [&program](std::string& name) { return complaint_about_command(program, name); }, ""));
  help_->add_flag("--man", manual_, "As a manual page, for man -l -");
  const std::string name = program.get_name();
  completion_->add_option("shell", shell_, "Which shell's")
      ->required()
      ->type_name("bash|zsh|fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  completion_->footer(
      fmt::format("Examples:\n"
                  "  source <({0} completion bash)\n"
                  "  {0} completion zsh >\"${{fpath[1]}}/_{0}\"\n"
                  "  {0} completion fish >~/.config/fish/completions/{0}.fish\n",
                  name));
}

std::string HelpCommands::help() const {
  const CLI::App* command = command_.empty() ? nullptr : program_.get_subcommand(command_);
  if (manual_) return manual_page(program_, command != nullptr ? *command : program_);
  if (command != nullptr) return command->help(program_.get_name());
  // CLI::App::help() would be that of the command help.
  return program_.get_formatter()->make_help(&program_, program_.get_name(),
                                             CLI::AppFormatMode::Normal);
}

std::optional<std::string> HelpCommands::parse(int count, char** words) {
  try {
    program_.parse(count, words);
  } catch (const CLI::Success& asked) {
    std::ostringstream text;
    program_.exit(asked, text, text);
    return text.str();
  }
  return answer();
}

std::optional<std::string> HelpCommands::answer() const {
  if (help_->parsed()) return help();
  if (completion_->parsed()) return completion(program_, shell_);
  return std::nullopt;
}

}  // namespace weft::tool
