#include "zeus/device/knobs/knob_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace knob_policy_test {

using ::testing::HasSubstr;

class KnobPolicyTest : public ::testing::Test {
 protected:
  Result<KnobPolicy> Read(const std::string& text, mode_t mode = 0644) {
    folder_.AddFile("knobs.json", text);
    EXPECT_EQ(::chmod(file_.c_str(), mode), 0);
    return ReadKnobPolicy(file_);
  }

  zeus::testing::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "knobs.json";
};

TEST_F(KnobPolicyTest, WithoutAFileNothingIsRaised) {
  const auto policy = ReadKnobPolicy(file_);
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(policy.value().Allowed(Ceiling::kAsFound), Ceiling::kAsFound);
  EXPECT_EQ(policy.value().Allowed(Ceiling::kOfDevice), Ceiling::kOfDevice);
}

TEST_F(KnobPolicyTest, AFileOfRootAllowsIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of root";
  const auto policy = Read(R"({"may_raise": true, "caps_are_intended": true})");
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(policy.value().Allowed(Ceiling::kAsFound), Ceiling::kOfDevice);
  EXPECT_TRUE(policy.value().caps_are_intended);
}

TEST_F(KnobPolicyTest, AFileThatOthersMayWriteAllowsNothing) {
  const auto policy = Read(R"({"may_raise": true})", 0666);
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.error().code, ErrorCode::kPermissionDenied);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(file_.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  EXPECT_EQ(ReadKnobPolicy(file_).error().code, ErrorCode::kPermissionDenied);
}

TEST_F(KnobPolicyTest, NonsenseIsRefusedWithItsName) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of root";
  for (const char* text : {"", "[]", R"({"may_raise": 1})", R"({"may_rise": true})"})
    EXPECT_FALSE(Read(text).ok()) << text;
  EXPECT_THAT(Read(R"({"may_rise": true})").error().message, HasSubstr("may_rise"));
}

}  // namespace knob_policy_test
}  // namespace zeus
