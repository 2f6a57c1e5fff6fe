#include "apps/zeus/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/numbers.h"

namespace zeus::cli {
namespace command_line_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A program "boil" with a verb "egg".
class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    line_.program().RequireVerb();
    line_.AddVersion("boil 1.0");
    egg_.AddOption("--minutes", minutes_, "How long").Check(WholeNumberBetween(1, 60));
    egg_.AddOption("--size", size_, "How large").Check(OneOf({"M", "L"})).ShowDefault();
    egg_.AddFlag("--salt{table}", salt_, "With salt");
    egg_.OnChosen([this] { chosen_ = true; });
    egg_.Footer("Eat it hot.");
  }

  // Returns the sentence that complains about a wrong command line.
  std::string Mistake(std::vector<std::string> words) {
    const auto parsed = line_.Parse(std::move(words));
    if (parsed.ok()) return "";
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    return parsed.error().message;
  }

  std::optional<unsigned> minutes_;
  std::string size_ = "M";
  std::string salt_;
  bool chosen_ = false;
  CommandLine line_{"boil", "Boils things."};
  const Verb egg_ = line_.program().AddVerb("egg", "Boil an egg");
};

TEST_F(CommandLineTest, OptionsFillVariables) {
  const auto parsed = line_.Parse({"egg", "--minutes", "5", "--salt", "--size=L"});
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed.value(), CommandLine::Next::kAct);
  EXPECT_EQ(minutes_, 5U);
  EXPECT_EQ(salt_, "table");
  EXPECT_EQ(size_, "L");
  EXPECT_TRUE(chosen_);
  EXPECT_TRUE(line_.Chose("egg"));
}

TEST_F(CommandLineTest, NumbersAreDecimal) {
  ASSERT_TRUE(line_.Parse({"egg", "--minutes", "010"}).ok());
  EXPECT_EQ(minutes_, 10U);
}

TEST_F(CommandLineTest, MistakesAreOneSentence) {
  EXPECT_EQ(Mistake({}), "a subcommand is required (see boil --help)");
  EXPECT_EQ(Mistake({"egg", "--pepper"}), "\"--pepper\" is not known here (see boil egg --help)");
  EXPECT_EQ(Mistake({"egg", "--minutes", "99"}),
            "--minutes: must be a whole number from 1 to 60, not \"99\" (see boil egg --help)");
  EXPECT_EQ(Mistake({"egg", "--size", "S"}), "--size: S not in {M,L} (see boil egg --help)");
  EXPECT_FALSE(chosen_);
}

TEST_F(CommandLineTest, AMistypedWordIsAnsweredWithTheOneThatWasMeant) {
  EXPECT_EQ(Mistake({"eg"}), "\"eg\" is not known here: did you mean egg? (see boil --help)");
  EXPECT_EQ(Mistake({"egg", "--minuets", "5"}),
            "\"--minuets\" is not known here: did you mean --minutes? (see boil egg --help)");
  EXPECT_EQ(Mistake({"egg", "--minuets=5"}),
            "\"--minuets=5\" is not known here: did you mean --minutes? (see boil egg --help)");
  EXPECT_EQ(egg_.Unknown("--siez").message,
            "\"--siez\" is not known here: did you mean --size? (see boil egg --help)");
  EXPECT_EQ(Mistake({"help", "egs"}),
            "\"egs\" is not known here: did you mean egg? (see boil --help)");
}

TEST_F(CommandLineTest, UnknownWordsRemainWhereTheyAreWanted) {
  egg_.StopAtUnknown();
  ASSERT_TRUE(line_.Parse({"egg", "--minutes", "5", "in", "--water"}).ok());
  EXPECT_THAT(egg_.remaining(), ElementsAre("in", "--water"));
}

TEST_F(CommandLineTest, HelpAndVersionArePrintedAndNothingIsDone) {
  const auto printed = [this](const std::vector<std::string>& words) {
    ::testing::internal::CaptureStdout();
    const auto parsed = line_.Parse(words);
    EXPECT_TRUE(parsed.ok() && parsed.value() == CommandLine::Next::kEnd);
    return ::testing::internal::GetCapturedStdout();
  };
  const std::string help = printed({"egg", "--help"});
  EXPECT_THAT(help, HasSubstr("--minutes UINT:1 to 60"));
  EXPECT_THAT(help, HasSubstr("--size TEXT:{M,L}=M"));
  EXPECT_THAT(help, HasSubstr("Eat it hot."));
  EXPECT_EQ(printed({"help", "egg"}), help);
  EXPECT_EQ(printed({"--version"}), "boil 1.0\n");
  EXPECT_FALSE(chosen_);
}

TEST_F(CommandLineTest, ErrorsBecomeASentenceAndAnExitCode) {
  const auto run = [this](std::vector<const char*> words,
                          const std::function<Result<int>()>& action) {
    ::testing::internal::CaptureStderr();
    words.insert(words.begin(), "boil");
    const int code = line_.Run(static_cast<int>(words.size()), words.data(), action);
    return std::to_string(code) + " " + ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(run({"egg"}, [] { return 3; }), "3 ");
  EXPECT_EQ(run({"egg"},
                [] {
                  return Error{ErrorCode::kNotFound, "there is no egg"};
                }),
            "3 boil: there is no egg\n");
  EXPECT_EQ(run({"egg"}, []() -> Result<int> { throw std::runtime_error("it broke"); }),
            "7 boil: it broke\n");
  EXPECT_EQ(run({"egg", "--minutes"}, [] { return 0; }),
            "2 boil: --minutes: 1 required UINT:1 to 60 missing (see boil egg --help)\n");
}

}  // namespace command_line_test
}  // namespace zeus::cli
