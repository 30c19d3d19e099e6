// Help, manual pages and completions of a program, all out of the option table in CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace weft::tool {

/// Help in lines that fit the terminal.
void use_wrapped_help(CLI::App& app);

std::vector<const CLI::App*> commands_of(const CLI::App& program);
std::vector<std::string> command_names(const CLI::App& program);

/// An option's description, whether it is required, and its default.
std::string option_text(const CLI::Option& option);

/// Whether an option is followed by a value.
bool takes_value(const CLI::Option& option);

/// The page of a command, or of the program itself, in the language of man.
std::string manual_page(const CLI::App& program, const CLI::App& command);

/// The program's completions for "bash", "zsh" or "fish".
std::string completion(const CLI::App& program, const std::string& shell);

/// The commands `help [COMMAND]` and `completion SHELL`.
class HelpCommands {
 public:
  /// To be made when the program has all its other commands.
  explicit HelpCommands(CLI::App& program);

  /// Parses the command line. The text to print, if it asked for one of them, or for the help or
  /// the version as options. Throws what CLI::App::parse throws, where it is wrong.
  std::optional<std::string> parse(int count, char** words);
  /// The text to print, if the command line that was parsed asked for one of them.
  std::optional<std::string> answer() const;

 private:
  std::string help() const;

  CLI::App& program_;
  CLI::App* help_;
  CLI::App* completion_;
  std::string command_;  ///< Empty: the program itself.
  bool manual_ = false;
  std::string shell_;
};

}  // namespace weft::tool
