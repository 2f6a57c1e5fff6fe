#include "zeus/http/tokens.h"

#include <gtest/gtest.h>

#include <fstream>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::http {
namespace tokens_test {

class TokenStoreTest : public ::testing::Test {
 protected:
  zeus::testing::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "tokens";
};

TEST_F(TokenStoreTest, ATokenIsRecognisedAndNothingElseIs) {
  const std::string writer = AddToken(path_, {.name = "ci", .role = Role::kWrite}).value();
  const std::string reader = AddToken(path_, {.name = "grafana", .role = Role::kRead}).value();
  const TokenStore store = TokenStore::Load(path_).value();
  ASSERT_EQ(store.size(), 2u);
  EXPECT_EQ(store.Find(writer)->name, "ci");
  EXPECT_EQ(store.Find(reader)->role, Role::kRead);
  for (const std::string& wrong :
       {std::string(), std::string("zeus_"), writer + " ", writer.substr(1), reader + writer})
    EXPECT_FALSE(store.Find(wrong)) << wrong;
}

TEST_F(TokenStoreTest, TokensOfTheSameNameInOneFileAreRefused) {
  ASSERT_TRUE(AddToken(path_, {.name = "ci", .role = Role::kWrite}).ok());
  EXPECT_EQ(AddToken(path_, {.name = "ci", .role = Role::kRead}).error().code,
            ErrorCode::kConflict);
  EXPECT_TRUE(AddToken(path_, {.name = "c", .role = Role::kRead}).ok())
      << "a part of a name is another name";
}

TEST_F(TokenStoreTest, AFileForOthersIsRefused) {
  ASSERT_TRUE(AddToken(path_, {.name = "ci", .role = Role::kWrite}).ok());
  std::filesystem::permissions(path_, std::filesystem::perms::group_write,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(TokenStore::Load(path_).error().code, ErrorCode::kPermissionDenied);
}

TEST_F(TokenStoreTest, ALineThatIsNoTokenIsNamed) {
  ASSERT_TRUE(AddToken(path_, {.name = "ci", .role = Role::kWrite}).ok());
  for (const char* line : {"x", "ci write salt short", "ci owner 00 11", "a b c d e"}) {
    std::ofstream(path_, std::ios::app) << "# a comment\n\n" << line << "\n";
    const auto store = TokenStore::Load(path_);
    ASSERT_FALSE(store.ok()) << line;
    EXPECT_NE(store.error().message.find("line 4"), std::string::npos) << store.error().message;
  }
}

TEST_F(TokenStoreTest, ATokenKnowsItsNameSpaceAndRole) {
  const std::string tenant =
      AddToken(path_, {.name = "blue", .role = Role::kWrite, .name_space = "team"}).value();
  const std::string admin = AddToken(path_, {.name = "root", .role = Role::kAdmin}).value();
  const TokenStore store = TokenStore::Load(path_).value();
  EXPECT_EQ(store.Find(tenant)->name_space, "team");
  EXPECT_EQ(store.Find(admin)->role, Role::kAdmin);
  EXPECT_EQ(store.Find(admin)->name_space, "");
  EXPECT_EQ(store.name_spaces(), (std::set<std::string>{"", "team"}));
  EXPECT_FALSE(AddToken(path_, {.name = "x", .name_space = "a/b"}).ok());
}

TEST_F(TokenStoreTest, AFileIsReadAgainWhenItHasChanged) {
  const std::string first = AddToken(path_, {.name = "first"}).value();
  const auto file = TokenFile::Open(path_).value();
  EXPECT_FALSE(file->Refresh().value());
  const std::string second = AddToken(path_, {.name = "second"}).value();
  EXPECT_FALSE(file->current()->Find(second));
  EXPECT_TRUE(file->Refresh().value());
  EXPECT_TRUE(file->current()->Find(second));
  std::ofstream(path_, std::ios::app) << "nonsense\n";
  EXPECT_FALSE(file->Refresh().ok());
  EXPECT_TRUE(file->current()->Find(first)) << "the tokens of before stay";
}

using Verdict = LoginLimiter::Verdict;

class LoginLimiterTest : public ::testing::Test {
 protected:
  void Guess(int times) {
    for (int i = 0; i < times; ++i) ASSERT_EQ(limiter_.Judge("10.0.0.1", ""), Verdict::kReject);
  }

  VirtualClock clock_;
  LoginLimiter limiter_{clock_};
};

TEST_F(LoginLimiterTest, GuessesEnd) {
  Guess(LoginLimiter::kMostFailures);
  EXPECT_EQ(limiter_.Judge("10.0.0.1", ""), Verdict::kTooMany);
  // A right guess is not told from a wrong one any more.
  EXPECT_EQ(limiter_.Judge("10.0.0.1", "ci"), Verdict::kTooMany);
  EXPECT_EQ(limiter_.Judge("10.0.0.2", "ci"), Verdict::kAccept);
}

TEST_F(LoginLimiterTest, WhoWasLetInBeforeIsNotShutOutByANeighbour) {
  EXPECT_EQ(limiter_.Judge("10.0.0.1", "ci"), Verdict::kAccept);
  Guess(LoginLimiter::kMostFailures);
  EXPECT_EQ(limiter_.Judge("10.0.0.1", "ci"), Verdict::kAccept);
  EXPECT_EQ(limiter_.Judge("10.0.0.1", "other"), Verdict::kTooMany);
}

TEST_F(LoginLimiterTest, TimeForgives) {
  Guess(LoginLimiter::kMostFailures);
  clock_.Advance(LoginLimiter::kRefill);
  Guess(1);
  EXPECT_EQ(limiter_.Judge("10.0.0.1", ""), Verdict::kTooMany);
  clock_.Advance(LoginLimiter::kMostFailures * LoginLimiter::kRefill);
  Guess(LoginLimiter::kMostFailures);
}

TEST_F(LoginLimiterTest, ManyAddressesTakeBoundedMemoryAndHideNobodyWhoGuesses) {
  Guess(LoginLimiter::kMostFailures);
  for (std::size_t i = 0; i < 3 * LoginLimiter::kMostAddresses; ++i) {
    clock_.Advance(Seconds(1e-6));
    limiter_.Judge(std::to_string(i), "");
    if (i % 1000 == 0) {
      EXPECT_EQ(limiter_.Judge("10.0.0.1", ""), Verdict::kTooMany);
    }
  }
}

}  // namespace tokens_test
}  // namespace zeus::http
