// Manual pages.
#include <fmt/format.h>

#include <sstream>
#include <weft/version.hpp>

#include "common/help.hpp"

namespace weft::tool {
namespace {

/// Text as man reads it: what it would obey is escaped.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char each : text) {
    if (each == '\\')
      out += "\\e";
    else if (each == '-')
      out += "\\-";
    else
      out += each;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string upper(std::string text) {
  for (char& each : text)
    if (each >= 'a' && each <= 'z') each = static_cast<char>(each - 'a' + 'A');
  return text;
}

std::string page_of(const CLI::App& program, const CLI::App& command) {
  return &program == &command ? program.get_name() : program.get_name() + "-" + command.get_name();
}

/// As it is typed.
std::string words_of(const CLI::App& program, const CLI::App& command) {
  return &program == &command ? program.get_name() : program.get_name() + " " + command.get_name();
}

std::string first_sentence(const std::string& text) {
  return text.substr(0, std::min(text.find(". "), text.find_last_not_of('.') + 1));
}

std::string entry(const std::string& name, const std::string& value, const std::string& text) {
  const std::string argument = value.empty() ? "" : fmt::format(" \\fI{}\\fR", escaped(value));
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", escaped(name), argument, escaped(text));
}

std::string entry(const CLI::Option& option) {
  return entry(option.get_name(option.get_positional(), true),
               takes_value(option) ? option.get_type_name() : "", option_text(option));
}

std::string synopsis(const CLI::App& program, const CLI::App& command) {
  std::string text =
      fmt::format(".SH SYNOPSIS\n.B {}\n[OPTIONS]", escaped(words_of(program, command)));
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional())
      text += option->get_required() ? " " + upper(option->get_name(true))
                                     : fmt::format(" [{}]", upper(option->get_name(true)));
  if (&program == &command)
    text += fmt::format("\n.br\n.B {}\nCOMMAND [OPTIONS]", escaped(program.get_name()));
  return text + "\n";
}

std::string options(const CLI::App& command) {
  std::string text = ".SH OPTIONS\n";
  for (const std::string& group : command.get_groups()) {
    if (group.empty()) continue;
    if (group != "Options") text += fmt::format(".SS \"{}\"\n", escaped(group));
    for (const CLI::Option* option : command.get_options())
      if (option->get_group() == group) text += entry(*option);
  }
  return text;
}

std::string commands(const CLI::App& program) {
  std::string text;
  for (const CLI::App* each : commands_of(program)) {
    if (text.empty()) text = ".SH COMMANDS\n";
    text += entry(words_of(program, *each), "", each->get_description());
  }
  return text;
}

/// A command's footer: its headings, which end with a colon, become those of the page.
std::string footer(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  bool literal = false;
  const auto end_literal = [&] {
    if (literal) out += ".fi\n";
    literal = false;
  };
  for (std::string line; std::getline(lines, line);) {
    const bool heading = line.ends_with(':') && !line.starts_with(' ');
    if (heading) {
      end_literal();
      out += fmt::format(".SH {}\n.nf\n", escaped(upper(line.substr(0, line.size() - 1))));
      literal = true;
    } else if (literal) {
      out += escaped(line) + "\n";
    } else if (!line.empty()) {
      out += (out.empty() ? ".SH NOTES\n" : "") + escaped(line) + "\n";
    }
  }
  end_literal();
  return out;
}

std::string see_also(const CLI::App& program, const CLI::App& command) {
  std::string text;
  for (const CLI::App* each : commands_of(program))
    // These two have no page.
    if (each != &command && each->get_name() != "help" && each->get_name() != "completion")
      text +=
          fmt::format("{}.BR {} (1)", text.empty() ? "" : ",\n", escaped(page_of(program, *each)));
  if (&program != &command)
    text =
        fmt::format(".BR {} (1){}{}", escaped(program.get_name()), text.empty() ? "" : ",\n", text);
  return text.empty() ? "" : ".SH SEE ALSO\n" + text + "\n";
}

}  // namespace

std::string manual_page(const CLI::App& program, const CLI::App& command) {
  const std::string page = page_of(program, command);
  return fmt::format(".TH \"{}\" 1 \"\" \"Weft {}\" \"Weft\"\n.ad l\n.nh\n.SH NAME\n{} \\- {}\n",
                     escaped(upper(page)), WEFT_VERSION, escaped(page),
                     escaped(first_sentence(command.get_description()))) +
         synopsis(program, command) +
         fmt::format(".SH DESCRIPTION\n{}\n", escaped(command.get_description())) +
         (&program == &command ? commands(program) : "") + options(command) +
         footer(command.get_footer()) + see_also(program, command);
}

}  // namespace weft::tool
