// Where the values of options come from: the call, the environment, a file, the defaults.
#include "config/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

namespace weft::core {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Source = Setting::Source;

/// A file that is there as long as the test.
class File {
 public:
  explicit File(const std::string& text)
      : path_(testing::TempDir() + "weft-settings-" + std::to_string(getpid()) + ".toml") {
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

Setting setting(const Settings& settings, const std::string& name) {
  for (const Setting& each : settings.list)
    if (each.name == name) return each;
  ADD_FAILURE() << "no setting " << name;
  return {};
}

std::string refusal(const Config& call, const Environment& variables) {
  const auto settings = resolve_settings(call, variables);
  if (settings) return "";
  EXPECT_EQ(settings.error().code(), Code::invalid_argument);
  return settings.error().message();
}

TEST(Settings, DefaultsWhereNobodySaysAnything) {
  const auto settings = resolve_settings({}, {});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->list.size(), options().size());
  EXPECT_THAT(settings->warnings, IsEmpty());
  for (const Setting& each : settings->list) {
    EXPECT_EQ(each.source, Source::standard) << each.name;
    EXPECT_EQ(each.place, "") << each.name;
  }
  EXPECT_EQ(setting(*settings, "spin").value, "100us");
}

TEST(Settings, CallBeforeEnvironmentBeforeFile) {
  const File file("rails = 2\nthreads = 3\nwindow = 4\n");
  Config call;
  call.config_file = file.path();
  call.rails = 7;
  const auto settings = resolve_settings(call, {{"WEFT_RAILS", "8"}, {"WEFT_THREADS", "9"}});
  ASSERT_TRUE(settings) << settings.error().to_string();
  EXPECT_EQ(settings->config.rails, 7U);
  EXPECT_EQ(settings->config.threads, 9U);
  EXPECT_EQ(settings->config.window, 4U);
  EXPECT_EQ(setting(*settings, "config_file").source, Source::call);
  EXPECT_EQ(setting(*settings, "rails").source, Source::call);
  EXPECT_EQ(setting(*settings, "threads").source, Source::environment);
  EXPECT_EQ(setting(*settings, "threads").place, "WEFT_THREADS");
  EXPECT_EQ(setting(*settings, "window").source, Source::file);
  EXPECT_EQ(setting(*settings, "window").place, file.path() + ":3");
  EXPECT_EQ(setting(*settings, "max_nics").source, Source::standard);
}

TEST(Settings, EveryKindOfValueFromTheEnvironment) {
  const auto settings = resolve_settings({}, {
                                                 {"WEFT_NAME", "prefill-3"},
                                                 {"WEFT_PROVIDERS", "efa, ^tcp"},
                                                 {"WEFT_NICS", "rdmap*"},
                                                 {"WEFT_ALLOW_EMULATION", "false"},
                                                 {"WEFT_CHUNK_BYTES", "512KiB"},
                                                 {"WEFT_UNCLAIMED_BYTES", "2GiB"},
                                                 {"WEFT_SPIN", "5ms"},
                                                 {"WEFT_DEATH_AFTER", "3s"},
                                                 {"WEFT_PROGRESS", "manual"},
                                                 {"WEFT_TRANSPORT", "bounce"},
                                                 {"WEFT_PEER_EVENTS", "1"},
                                             });
  ASSERT_TRUE(settings) << settings.error().to_string();
  const Config& config = settings->config;
  EXPECT_EQ(config.name, "prefill-3");
  EXPECT_THAT(config.providers, ElementsAre("efa", "^tcp"));
  EXPECT_THAT(config.nics, ElementsAre("rdmap*"));
  EXPECT_FALSE(config.allow_emulation);
  EXPECT_EQ(config.chunk_bytes, 512U << 10);
  EXPECT_EQ(config.unclaimed_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(config.spin, 5ms);
  EXPECT_EQ(config.death_after, 3s);
  EXPECT_EQ(config.progress, Progress::manual);
  EXPECT_EQ(config.transport, TransportKind::bounce);
  EXPECT_TRUE(config.peer_events);
  // What is shown can be written again.
  for (const Setting& each : settings->list)
    if (each.source == Source::environment && each.name != "name") {
      std::string variable = "WEFT_" + each.name;
      for (char& letter : variable) letter = static_cast<char>(std::toupper(letter));
      const auto again = resolve_settings({}, {{variable, each.value}});
      ASSERT_TRUE(again);
      EXPECT_EQ(setting(*again, each.name).value, each.value);
    }
}

TEST(Settings, AnEmptyVariableIsAnEmptyListOrText) {
  const File file("providers = ['tcp']\n");
  const auto settings =
      resolve_settings({}, {{"WEFT_CONFIG_FILE", file.path()}, {"WEFT_PROVIDERS", ""}});
  ASSERT_TRUE(settings);
  EXPECT_TRUE(settings->config.providers.empty());
  EXPECT_EQ(setting(*settings, "providers").source, Source::environment);
}

TEST(Settings, EveryKindOfValueFromAFile) {
  const File file(
      "# A comment.\n"
      "providers = [\"efa\", \"tcp\"]\n"
      "spin = '250us'\n"
      "chunk_bytes = 65536\n"
      "peer_events = true\n");
  const auto settings = resolve_settings({}, {{"WEFT_CONFIG_FILE", file.path()}});
  ASSERT_TRUE(settings) << settings.error().to_string();
  EXPECT_THAT(settings->config.providers, ElementsAre("efa", "tcp"));
  EXPECT_EQ(settings->config.spin, 250us);
  EXPECT_EQ(settings->config.chunk_bytes, 65536U);
  EXPECT_TRUE(settings->config.peer_events);
  EXPECT_EQ(setting(*settings, "providers").place, file.path() + ":2");
}

TEST(Settings, TextThatCannotBeReadIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal({}, {{"WEFT_RAILS", "two"}}), HasSubstr("WEFT_RAILS says 'two'"));
  EXPECT_THAT(refusal({}, {{"WEFT_RAILS", "-1"}}), HasSubstr("a number"));
  EXPECT_THAT(refusal({}, {{"WEFT_RAILS", "5000000000"}}), HasSubstr("a number"));
  EXPECT_THAT(refusal({}, {{"WEFT_RAILS", ""}}), HasSubstr("a number"));
  EXPECT_THAT(refusal({}, {{"WEFT_SPIN", "5"}}), HasSubstr("one of the units ns, us, ms, s"));
  EXPECT_THAT(refusal({}, {{"WEFT_SPIN", "10000000000s"}}), HasSubstr("units"));
  EXPECT_THAT(refusal({}, {{"WEFT_CHUNK_BYTES", "4KB"}}), HasSubstr("KiB"));
  EXPECT_THAT(refusal({}, {{"WEFT_CHUNK_BYTES", "18446744073709551615GiB"}}), HasSubstr("KiB"));
  EXPECT_THAT(refusal({}, {{"WEFT_PROGRESS", "auto"}}), HasSubstr("one of threads, manual"));
  EXPECT_THAT(refusal({}, {{"WEFT_PEER_EVENTS", "yes"}}), HasSubstr("true, false"));
  EXPECT_THAT(refusal({}, {{"WEFT_PROVIDERS", "tcp,,shm"}}), HasSubstr("commas"));
}

TEST(Settings, ValuesOutOfRangeAreRefusedByTheNameThatTheirUserWrote) {
  Config call;
  call.bounce_buffers = 0;
  EXPECT_EQ(refusal(call, {}), "bounce_buffers is 0, and must be from 1 to 1024");
  EXPECT_EQ(refusal({}, {{"WEFT_BOUNCE_BUFFERS", "0"}}),
            "WEFT_BOUNCE_BUFFERS is 0, and must be from 1 to 1024");
  const File file("rails = 1\nbounce_buffers = 1025\n");
  EXPECT_EQ(refusal({}, {{"WEFT_CONFIG_FILE", file.path()}}),
            file.path() + ":2: bounce_buffers is 1025, and must be from 1 to 1024");
}

TEST(Settings, AMisspeltNameIsToldWithTheNearestOption) {
  const auto warnings = [](const Environment& environment) {
    const auto settings = resolve_settings({}, environment);
    EXPECT_TRUE(settings) << settings.error().to_string();
    return settings ? settings->warnings : std::vector<std::string>{};
  };
  EXPECT_THAT(warnings({{"WEFT_RAIL", "2"}, {"WEFT_RAILS", "2"}}),
              ElementsAre("the environment sets WEFT_RAIL, which is no option of Weft's; did you "
                          "mean WEFT_RAILS?"));
  EXPECT_THAT(warnings({{"WEFT_BOUNCE_BUFFER", "8"}}),
              ElementsAre(HasSubstr("did you mean WEFT_BOUNCE_BUFFERS?")));
  EXPECT_THAT(warnings({{"WEFT_COLOUR_OF_THE_SKY", "blue"}, {"WEFT_" + std::string(99, 'X'), ""}}),
              ElementsAre(Not(HasSubstr("did you mean")), Not(HasSubstr("did you mean"))));
  EXPECT_THAT(warnings({{"WEFT_LOG", "debug"}, {"WEFT_LONG", "1"}, {"WEFT_TEST_PROVIDERS", "tcp"}}),
              IsEmpty());
  const File file("bounce_bufers = 8\n");
  EXPECT_THAT(
      refusal({}, {{"WEFT_CONFIG_FILE", file.path()}}),
      HasSubstr(":1 sets 'bounce_bufers', which is no option; did you mean bounce_buffers?"));
}

TEST(Settings, FilesThatAreWrongAreRefusedWithTheLine) {
  const auto said = [](const std::string& text) {
    const File file(text);
    return refusal({}, {{"WEFT_CONFIG_FILE", file.path()}});
  };
  EXPECT_THAT(said("rails = 1\nproviderz = ['tcp']\n"), HasSubstr(":2 sets 'providerz'"));
  EXPECT_THAT(said("rails = \n"), HasSubstr("can't read"));
  EXPECT_THAT(said("[rails]\ncount = 1\n"), HasSubstr("must be a text"));
  EXPECT_THAT(said("[=]\n"), HasSubstr("can't read"));
  EXPECT_THAT(said("rails = 1.5\n"), HasSubstr("must be a text"));
  EXPECT_THAT(said("providers = [1]\n"), HasSubstr("must be a text"));
  EXPECT_THAT(said("providers = ['tcp,shm']\n"), HasSubstr("must be a text"));
  EXPECT_THAT(said("config_file = 'other'\n"), HasSubstr("no option"));
  EXPECT_THAT(said("rails = -2\n"), HasSubstr("'-2'"));
  EXPECT_THAT(refusal({}, {{"WEFT_CONFIG_FILE", "/nowhere/weft.toml"}}), HasSubstr("/nowhere/"));
}

TEST(Settings, PoliciesAreTablesOfTheFile) {
  const File file(
      "[policy]\n"
      "max_copies = 2\n"
      "providers = [\"efa\", \"tcp\"]\n"
      "[policy.latency]\n"
      "forbid_cpu_copies = true\n"
      "min_gbps = 12.5\n"
      "[policy.bulk]\n"
      "max_copies = 4\n"
      "[policy.peers.\"decode-1\"]\n"
      "require_gpudirect = true\n");
  const auto settings = resolve_settings({}, {{"WEFT_CONFIG_FILE", file.path()}});
  ASSERT_TRUE(settings) << settings.error().to_string();
  const Config& config = settings->config;
  EXPECT_EQ(config.policy, (Policy{.max_copies = 2, .providers = {"efa", "tcp"}}));
  EXPECT_EQ(config.latency_policy, (Policy{.forbid_cpu_copies = true, .min_gbps = 12.5}));
  EXPECT_EQ(config.bulk_policy, Policy{.max_copies = 4});
  ASSERT_EQ(config.peer_policies.size(), 1U);
  EXPECT_EQ(config.peer_policies.at("decode-1"), Policy{.require_gpudirect = true});
  EXPECT_EQ(setting(*settings, "policy").value, "max_copies=2,providers=efa+tcp");
  EXPECT_EQ(setting(*settings, "policy").place, file.path() + ":1");
  EXPECT_EQ(setting(*settings, "latency_policy").place, file.path() + ":4");
}

TEST(Settings, PoliciesAreTextInTheEnvironment) {
  const auto settings =
      resolve_settings({}, {{"WEFT_POLICY", "max-copies=0"},
                            {"WEFT_BULK_POLICY", "forbid_cpu_copies"},
                            {"WEFT_PEER_POLICIES", "a: max_copies=1; b: providers=efa+tcp"}});
  ASSERT_TRUE(settings) << settings.error().to_string();
  EXPECT_EQ(settings->config.policy, Policy{.max_copies = 0});
  EXPECT_EQ(settings->config.bulk_policy, Policy{.forbid_cpu_copies = true});
  EXPECT_EQ(settings->config.peer_policies,
            (std::map<std::string, Policy>{{"a", {.max_copies = 1}},
                                           {"b", {.providers = {"efa", "tcp"}}}}));
  EXPECT_EQ(setting(*settings, "peer_policies").value, "a: max_copies=1; b: providers=efa+tcp");
}

TEST(Settings, APeerMayBeNamedWithoutAPolicy) {
  std::string text = "a:";
  for (int reading = 0; reading < 2; ++reading) {
    const auto settings = resolve_settings({}, {{"WEFT_PEER_POLICIES", text}});
    ASSERT_TRUE(settings) << settings.error().to_string();
    EXPECT_EQ(settings->config.peer_policies, (std::map<std::string, Policy>{{"a", {}}}));
    text = setting(*settings, "peer_policies").value;
  }
}

TEST(Settings, PoliciesThatCantBeReadAreRefused) {
  const auto of_file = [](const std::string& text) {
    const File file(text);
    return refusal({}, {{"WEFT_CONFIG_FILE", file.path()}});
  };
  EXPECT_THAT(of_file("[policy]\nmost_copies = 1\n"), HasSubstr("a policy has no 'most_copies'"));
  EXPECT_THAT(of_file("[policy.urgent]\nmax_copies = 1\n"), HasSubstr("no class 'urgent'"));
  EXPECT_THAT(of_file("[policy]\nmax_copies = 1979-05-27\n"), HasSubstr("'max_copies'"));
  EXPECT_THAT(of_file("[policy.peers]\nmax_copies = 1\n"), HasSubstr("must be a table"));
  EXPECT_THAT(refusal({}, {{"WEFT_PEER_POLICIES", "max_copies=1"}}), HasSubstr("NAME: POLICY"));
  EXPECT_THAT(refusal({}, {{"WEFT_POLICY", "max_copies=few"}}), HasSubstr("a number of copies"));
}

TEST(Settings, AreSetByName) {
  Config config;
  ASSERT_TRUE(set_option(config, "providers", "efa,tcp"));
  ASSERT_TRUE(set_option(config, "default_timeout", "5s"));
  ASSERT_TRUE(set_option(config, "config_file", "weft.toml"));
  EXPECT_THAT(config.providers, ElementsAre("efa", "tcp"));
  EXPECT_EQ(config.default_timeout, 5s);
  EXPECT_EQ(config.config_file, "weft.toml");
  const auto misspelt = set_option(config, "provider", "efa");
  ASSERT_FALSE(misspelt);
  EXPECT_EQ(misspelt.error().code(), Code::not_found);
  EXPECT_EQ(misspelt.error().message(), "'provider' is no option; did you mean providers?");
  const auto unread = set_option(config, "window", "many");
  ASSERT_FALSE(unread);
  EXPECT_EQ(unread.error().code(), Code::invalid_argument);
  EXPECT_THAT(unread.error().message(), HasSubstr("window says 'many'"));
}

TEST(Settings, AreLeftAsTheyWereByAValueOutOfRange) {
  Config config;
  const auto refused = set_option(config, "bounce_buffers", "1025");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid_argument);
  EXPECT_EQ(refused.error().message(), "bounce_buffers is 1025, and must be from 1 to 1024");
  EXPECT_EQ(config.bounce_buffers, 4U);
}

TEST(Settings, TheTableSaysWhatIsTrueOfEachOption) {
  const auto settings = resolve_settings({}, {});
  ASSERT_TRUE(settings);
  std::size_t index = 0;
  for (const OptionInfo& info : options()) {
    EXPECT_EQ(settings->list.at(index++).name, info.name);
    EXPECT_FALSE(info.group.empty() || info.type.empty() || info.doc.empty()) << info.name;
    EXPECT_TRUE(info.variable.starts_with("WEFT_")) << info.name;
    // Bounds can be read, and are allowed themselves.
    for (const std::string_view bound : {info.standard, info.least, info.most}) {
      if (info.type == "text" || bound.empty()) continue;
      Config config;
      EXPECT_TRUE(set_option(config, info.name, bound)) << info.name << " = " << bound;
    }
    // Its default is that of the field.
    Config config;
    ASSERT_TRUE(set_option(config, info.name, info.standard)) << info.name;
    EXPECT_EQ(setting(*resolve_settings(config, {}), std::string(info.name)).source,
              Source::standard)
        << info.name;
  }
}

TEST(Settings, EachCanBeSetToWhatIsShownOfIt) {
  const auto settings = resolve_settings({}, {});
  ASSERT_TRUE(settings);
  for (const Setting& each : settings->list) {
    Config config;
    EXPECT_TRUE(set_option(config, each.name, each.value)) << each.name;
    EXPECT_EQ(setting(*resolve_settings(config, {}), each.name).value, each.value);
  }
}

TEST(Settings, TheEnvironmentCountsUnlessItIsNotWanted) {
  ASSERT_EQ(setenv("WEFT_WINDOW", "7", 1), 0);
  Config call;
  EXPECT_EQ(resolve_settings(call, environment_for(call))->config.window, 7U);
  call.use_environment = false;
  EXPECT_EQ(resolve_settings(call, environment_for(call))->config.window, 0U);
  unsetenv("WEFT_WINDOW");
}

}  // namespace
}  // namespace weft::core
