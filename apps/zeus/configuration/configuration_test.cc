#include "apps/zeus/configuration/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/command_line.h"
#include "apps/zeus/numbers.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::cli {
namespace configuration_test {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// A program "boil" with the verbs "egg" and "water", which read a weak file, a strong one, and the
// environment.
class ConfigurationTest : public ::testing::Test {
 protected:
  ConfigurationTest() {
    egg_.AddOption("--minutes", minutes_, "How long").Check(WholeNumberBetween(1, 60));
    egg_.AddOption("--spice", spices_, "What to add").Delimiter(',');
    const Option salt = egg_.AddFlag("--salt", salt_, "With salt");
    egg_.AddFlag("--pure", pure_, "With nothing").Excludes(salt);
    egg_.AddOption("--server", server_, "Where hens are");
    egg_.AddOption("--database", database_, "Where eggs are");
    line_.program().AddVerb("water", "Boil water").AddOption("--minutes", minutes_, "How long");
    line_.UseConfiguration(
        {.files = {weak_, strong_},
         .environment = [this](const std::string& name) -> std::optional<std::string> {
           const auto found = environment_.find(name);
           if (found == environment_.end()) return std::nullopt;
           return found->second;
         }},
        [this] { return line_.Describe(); });
  }

  static void Write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file) << text;
  }

  std::string Mistake(std::vector<std::string> words = {"egg"}) {
    const auto parsed = line_.Parse(std::move(words));
    return parsed.ok() ? "" : parsed.error().message;
  }

  zeus::testing::TemporaryDirectory folder_;
  std::filesystem::path weak_ = folder_.path() / "weak.toml";
  std::filesystem::path strong_ = folder_.path() / "strong.toml";
  std::map<std::string, std::string> environment_;
  unsigned minutes_ = 5;
  std::vector<std::string> spices_;
  bool salt_ = false;
  bool pure_ = false;
  std::string server_;
  std::string database_;
  CommandLine line_{"boil", "Boils things."};
  const Verb egg_ = line_.program().AddVerb("egg", "Boil an egg");
};

TEST_F(ConfigurationTest, UnknownKeysAreSkippedWhereAnotherProgramHasCheckedThem) {
  Write(weak_, "colour = \"red\"\n[fry]\nminutes = 1\n[egg]\nshape = 3\nminutes = 2\n");
  EXPECT_THAT(Mistake(), HasSubstr("colour"));
  const auto configuration =
      Configuration::Read({.files = {weak_}, .checked = true}, [this] { return line_.Describe(); });
  ASSERT_TRUE(configuration.ok()) << configuration.error().message;
  ASSERT_EQ(configuration.value().in_files().size(), 1U);
  EXPECT_EQ(configuration.value().in_files().front().option, "minutes");
}

TEST_F(ConfigurationTest, TheStrongestPlaceWins) {
  Write(weak_, "minutes = 1\n[egg]\nminutes = 2\n");
  EXPECT_EQ(Mistake(), "");
  EXPECT_EQ(minutes_, 2U);
  Write(strong_, "minutes = 3\n");
  EXPECT_EQ(Mistake(), "");
  EXPECT_EQ(minutes_, 3U);
  Write(strong_, "minutes = 3\n[egg]\nminutes = 4\n");
  EXPECT_EQ(Mistake(), "");
  EXPECT_EQ(minutes_, 4U);
  environment_["BOIL_EGG_MINUTES"] = "59";  // Another program's.
  environment_["ZEUS_EGG_MINUTES"] = "6";
  EXPECT_EQ(Mistake(), "");
  EXPECT_EQ(minutes_, 6U);
  EXPECT_EQ(Mistake({"egg", "--minutes", "7"}), "");
  EXPECT_EQ(minutes_, 7U);
}

TEST_F(ConfigurationTest, KeysOutsideOfTablesHoldForEveryVerbWithTheOption) {
  Write(weak_, "minutes = 9\nsalt = true\n");
  EXPECT_EQ(Mistake({"water"}), "");
  EXPECT_EQ(minutes_, 9U);
  EXPECT_FALSE(salt_);
}

TEST_F(ConfigurationTest, FlagsAndLists) {
  Write(weak_, "[egg]\nsalt = true\nspice = [\"dill\", \"caraway\"]\n");
  EXPECT_EQ(Mistake(), "");
  EXPECT_TRUE(salt_);
  EXPECT_THAT(spices_, ElementsAre("dill", "caraway"));
  salt_ = true;
  EXPECT_EQ(Mistake({"egg", "--salt=false"}), "");
  EXPECT_FALSE(salt_);
}

TEST_F(ConfigurationTest, TheCommandLineRulesOutWhatItExcludes) {
  Write(weak_, "[egg]\nsalt = true\nserver = \"http://hens\"\n");
  EXPECT_EQ(Mistake({"egg", "--pure", "--database", "eggs"}), "");
  EXPECT_FALSE(salt_);
  EXPECT_EQ(server_, "");
  environment_["ZEUS_SERVER"] = "http://other";
  Write(weak_, "[egg]\nserver = \"http://hens\"\n");
  EXPECT_EQ(Mistake(), "");
  EXPECT_EQ(server_, "");  // The program reads the variable itself.
}

TEST_F(ConfigurationTest, OfTwoPlacesThatExcludeEachOtherTheStrongerOneHolds) {
  Write(weak_, "[egg]\nserver = \"http://hens\"\n");
  Write(strong_, "database = \"eggs\"\n");
  EXPECT_EQ(Mistake(), "");
  EXPECT_EQ(server_, "");
  EXPECT_EQ(database_, "eggs");
}

TEST_F(ConfigurationTest, MistakesNameFileAndLine) {
  Write(strong_, "[egg]\nminuets = 5\n");
  EXPECT_EQ(Mistake(),
            strong_.string() + ":2: boil egg has no option --minuets: did you mean minutes?");
  Write(strong_, "[egg]\nminutes = 99\n");
  EXPECT_THAT(Mistake(), HasSubstr(strong_.string() + ":2: --minutes: must be a whole number"));
  Write(strong_, "[eg]\n");
  EXPECT_EQ(Mistake(), strong_.string() + ":1: boil has no verb \"eg\": did you mean egg?");
  Write(strong_, "\n\n[egg\n");
  EXPECT_THAT(Mistake(), HasSubstr(strong_.string() + ":3: "));
  Write(strong_, "[egg]\nsalt = 1\n");
  EXPECT_THAT(Mistake(), EndsWith(":2: salt must be true or false"));
  environment_["ZEUS_EGG_MINUTES"] = "0";
  Write(strong_, "");
  EXPECT_THAT(Mistake(), HasSubstr("environment ZEUS_EGG_MINUTES: --minutes: "));
}

}  // namespace configuration_test
}  // namespace zeus::cli
