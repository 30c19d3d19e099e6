// Options, and what is said about them: help, complaints, manual pages, completions.
#include "common/help.hpp"

#include <gmock/gmock.h>

#include "common/misspelt.hpp"
#include "common/options.hpp"

namespace weft::tool {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A program with one command, which has an option of each kind.
struct Program {
  CLI::App app{"Draws boxes.", "boxer"};
  bool fast = false;
  std::uint64_t bytes = 0;
  std::optional<unsigned> count;
  Nanoseconds patience{};
  std::vector<std::string> nics;
  std::string file, progress = "auto";
  Direction direction = Direction::write;

  Program() {
    use_wrapped_help(app);
    app.require_subcommand(1);
    CLI::App* draw = app.add_subcommand("draw", "Draws a box; it's done soon.");
    OptionGroup group(*draw, "Boxes");
    group.flag("--fast", fast, "In a hurry");
    group.number("--bytes", bytes, Multiples::binary, {1, 1 << 20}, "Of a box");
    group.number("--count", count, Multiples::decimal, {}, "Boxes")->default_str("1");
    group.seconds("--patience", patience, 0.5, "At most");
    add_nics(group, nics);
    group.file("--file", file, "Where to draw it");
    add_progress(group, progress);
    group.choice("--direction", direction, direction_names, "Which way");
    draw->footer("Examples:\n  boxer draw --fast\n");
  }

  /// The complaint; empty if there is none.
  std::string parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    try {
      app.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      return complaint(app, error);
    }
    return {};
  }
};

std::string complaint_about(const std::vector<std::string>& words) {
  return Program().parse(words);
}

TEST(Options, NamesOfProvidersAreThoseOfTheTable) {
  const std::string doc = doc_of("providers"), names = provider_names();
  EXPECT_THAT(doc, HasSubstr(": " + names + "; "));
  EXPECT_THAT(names, testing::StartsWith("shm, "));
  EXPECT_THAT(doc, Not(HasSubstr("`")));
  EXPECT_EQ(doc_of("no option"), "");
}

TEST(Options, AreRead) {
  Program program;
  ASSERT_EQ(program.parse({"draw", "--fast", "--bytes", "4K", "--count=3", "--patience", "1.5",
                           "--nics", "a,^b", "--direction", "read"}),
            "");
  EXPECT_TRUE(program.fast);
  EXPECT_EQ(program.bytes, 4096U);
  EXPECT_EQ(program.count, 3U);
  EXPECT_EQ(program.patience, std::chrono::milliseconds(1500));
  EXPECT_EQ(program.nics, (std::vector<std::string>{"a", "^b"}));
  EXPECT_EQ(program.direction, Direction::read);
}

TEST(Options, OutOfBoundsAreRefusedByName) {
  EXPECT_THAT(complaint_about({"draw", "--bytes", "0"}), HasSubstr("--bytes: 1 is the least"));
  EXPECT_THAT(complaint_about({"draw", "--bytes", "2M"}), HasSubstr("1048576 is the greatest"));
  EXPECT_THAT(complaint_about({"draw", "--count", "5000000000"}), HasSubstr("4294967295"));
  for (const char* wrong : {"", "nan", "inf", "0.4", "-1", "1s", "1e99"})
    EXPECT_THAT(complaint_about({"draw", "--patience", wrong}), HasSubstr("--patience: ")) << wrong;
  EXPECT_THAT(complaint_about({"draw", "--direction", "up"}),
              HasSubstr("--direction: 'up' is none of read, write"));
}

TEST(Misspelt, NearestNamesAreSuggested) {
  EXPECT_EQ(nearest("--tokns", {"--tokens", "--tp-size"}), "--tokens");
  EXPECT_EQ(nearest("dmeo", {"demo", "decode"}), "demo");
  EXPECT_EQ(nearest("--prov", {"--providers", "--progress"}), "--providers");
  EXPECT_EQ(nearest("--elephant", {"--tokens", "--tp-size"}), "");
}

TEST(Misspelt, ComplaintsNameWhatIsNotThere) {
  EXPECT_EQ(complaint_about({"draw", "--fats"}),
            "there is no option '--fats'; did you mean '--fast'? (see boxer draw --help)");
  EXPECT_EQ(complaint_about({"draw", "--byte=3"}),
            "there is no option '--byte'; did you mean '--bytes'? (see boxer draw --help)");
  EXPECT_EQ(complaint_about({"darw"}),
            "there is no command 'darw'; did you mean 'draw'? (see boxer --help)");
  EXPECT_EQ(complaint_about({"sing"}), "there is no command 'sing' (see boxer --help)");
  EXPECT_EQ(complaint_about({}), "a command is required (see boxer --help)");
}

TEST(Help, FitsAHundredColumnsAndHasDefaults) {
  Program program;
  std::istringstream lines(program.app.get_subcommand("draw")->help("boxer"));
  std::string all;
  for (std::string line; std::getline(lines, line); all += line + "\n")
    EXPECT_LE(line.size(), 100U) << line;
  for (const char* words : {"Usage: boxer draw", "\nBoxes:\n", "--bytes N[K|M|G]",
                            "Boxes (default: 1)", "--progress auto|always|never"})
    EXPECT_THAT(all, HasSubstr(words));
}

TEST(Help, IsACommandToo) {
  for (const auto& [words, found] :
       {std::pair(std::vector<std::string>{"help"}, "\n  draw "),
        std::pair(std::vector<std::string>{"help", "draw"}, "--patience SECONDS"),
        std::pair(std::vector<std::string>{"help", "--man", "draw"}, ".TH \"BOXER\\-DRAW\" 1"),
        std::pair(std::vector<std::string>{"completion", "fish"}, "complete -c boxer")}) {
    Program program;
    const HelpCommands help(program.app);
    ASSERT_EQ(program.parse(words), "");
    ASSERT_TRUE(help.answer());
    EXPECT_THAT(*help.answer(), HasSubstr(found));
  }
  Program program;
  const HelpCommands help(program.app);
  ASSERT_EQ(program.parse({"draw"}), "");
  EXPECT_FALSE(help.answer());
}

TEST(ManualPage, HasEachPartAndEscapesWhatRoffObeys) {
  Program program;
  program.app.get_subcommand("draw")->description(".hidden \\fB-dash");
  const std::string page = manual_page(program.app, *program.app.get_subcommand("draw"));
  for (const char* words :
       {".SH NAME\nboxer\\-draw \\- ", ".SH SYNOPSIS\n.B boxer draw", ".SS \"Boxes\"",
        "\\fB\\-\\-direction\\fR \\fIread|write\\fR", ".SH EXAMPLES", ".BR boxer (1)",
        ".SH DESCRIPTION\n\\&.hidden \\efB\\-dash"})
    EXPECT_THAT(page, HasSubstr(words));
  EXPECT_THAT(manual_page(program.app, program.app), HasSubstr("\\fBboxer draw\\fR"));
}

TEST(Completion, KnowsCommandsOptionsAndValues) {
  Program program;
  const std::string bash = completion(program.app, "bash");
  EXPECT_THAT(bash, HasSubstr("'draw --direction') COMPREPLY=($(compgen -W 'read write'"));
  EXPECT_THAT(bash, HasSubstr("'draw --file') COMPREPLY=($(compgen -f"));
  EXPECT_THAT(bash, HasSubstr("draw) words='--help --fast --bytes"));
  EXPECT_THAT(bash, Not(HasSubstr("'draw --fast')")));
  const std::string zsh = completion(program.app, "zsh");
  EXPECT_THAT(zsh, HasSubstr("'--direction=[Which way]:value:(read write)'"));
  EXPECT_THAT(zsh, HasSubstr("'draw:Draws a box'"));
  const std::string fish = completion(program.app, "fish");
  EXPECT_THAT(fish, HasSubstr("-l direction -r -a 'read write' -d 'Which way'"));
}

}  // namespace
}  // namespace weft::tool
