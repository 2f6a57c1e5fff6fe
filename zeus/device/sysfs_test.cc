#include "zeus/device/sysfs.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <string>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/privilege.h"

namespace zeus {
namespace sysfs_test {

using namespace zeus::literals;

class SysfsPowerLimitTest : public ::testing::Test {
 protected:
  SysfsPowerLimitTest() {
    directory_.AddFile("limit", "150000000\n");
    directory_.AddFile("rated", "200000000\n");
    directory_.AddFile("enabled", "1\n");
  }

  Result<SysfsPowerLimit> Open(SysfsPowerLimit::Writer write = WriteAttribute) {
    return SysfsPowerLimit::Open({.limit = directory_.path() / "limit",
                                  .rated = directory_.path() / "rated",
                                  .enabled = directory_.path() / "enabled"},
                                 std::move(write));
  }

  zeus::testing::TemporaryDirectory directory_;
};

TEST_F(SysfsPowerLimitTest, ReadsTheLimitItsRangeAndWhatItFound) {
  const auto limit = Open().value().Current().value();
  EXPECT_EQ(limit.requested, 150_W);
  EXPECT_EQ(limit.enforced, 150_W);
  EXPECT_EQ(limit.default_limit, 150_W);
  EXPECT_EQ(limit.range.min, 1_W);
  EXPECT_EQ(limit.range.max, 200_W);
}

TEST_F(SysfsPowerLimitTest, SetsInMicrowattsAndReadsBack) {
  const auto limit = Open().value().Set(Watts(99.5));
  ASSERT_TRUE(limit.ok()) << limit.error().message;
  EXPECT_EQ(limit.value().requested, Watts(99.5));
  EXPECT_EQ(limit.value().enforced, Watts(99.5));
  EXPECT_EQ(limit.value().default_limit, 150_W);
  EXPECT_EQ(ReadLine(directory_.path() / "limit").value(), "99500000");
}

TEST_F(SysfsPowerLimitTest, RefusesWhatIsOutsideTheRange) {
  const auto limit = Open();
  for (const Watts wrong : {0_W, Watts(-5), 201_W, Watts(std::nan(""))}) {
    const auto set = limit.value().Set(wrong);
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(ReadLine(directory_.path() / "limit").value(), "150000000");
}

TEST_F(SysfsPowerLimitTest, ALimitAboveTheRatedPowerWidensTheRange) {
  directory_.AddFile("limit", "4095875000");
  EXPECT_EQ(Open().value().Current().value().range.max, Watts(4095.875));
}

TEST_F(SysfsPowerLimitTest, WithoutARatedPowerTheLimitFoundIsTheHighest) {
  directory_.AddFile("rated", "0");
  EXPECT_EQ(Open().value().Current().value().range.max, 150_W);
  directory_.AddFile("limit", "0");
  EXPECT_EQ(Open().error().code, ErrorCode::kNotSupported);
}

TEST_F(SysfsPowerLimitTest, AStoredZeroMeansNoLimit) {
  directory_.AddFile("limit", "0");
  const auto limit = Open().value().Current().value();
  EXPECT_EQ(limit.enforced, 200_W);
  EXPECT_EQ(limit.default_limit, 200_W);
}

TEST_F(SysfsPowerLimitTest, ADisabledLimitIsNoneAndCannotBeSet) {
  directory_.AddFile("enabled", "0\n");
  const auto limit = Open();
  EXPECT_EQ(limit.value().Current().value().enforced, 200_W);
  const auto set = limit.value().Set(100_W);
  ASSERT_FALSE(set.ok());
  EXPECT_NE(set.error().message.find("echo 1 | sudo tee"), std::string::npos);
}

TEST_F(SysfsPowerLimitTest, NoDataOnWriteMeansLockedByFirmware) {
  const auto limit =
      Open([](const auto& path, auto) -> Status { return FileError(path, ENODATA); });
  const auto set = limit.value().Set(100_W);
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, ErrorCode::kNotSupported);
  EXPECT_NE(set.error().message.find("locked by firmware"), std::string::npos);
}

TEST_F(SysfsPowerLimitTest, RefusedPermissionSaysWhoMayDoIt) {
  const auto limit = Open([](const auto& path, auto) -> Status { return FileError(path, EACCES); });
  const auto set = limit.value().Set(100_W);
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, ErrorCode::kPermissionDenied);
  EXPECT_NE(set.error().message.find(RefusalAdvice()), std::string::npos);
}

TEST_F(SysfsPowerLimitTest, AValueThatIsNotTakenIsAnError) {
  const auto limit = Open([](const auto&, auto) { return Ok(); });
  const auto set = limit.value().Set(100_W);
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, ErrorCode::kUnavailable);
}

TEST_F(SysfsPowerLimitTest, AStricterLimitThanAskedForIsNotAnError) {
  const auto limit = Open([](const auto& path, auto) { return WriteAttribute(path, "80000000"); });
  const auto set = limit.value().Set(100_W);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set.value().requested, 100_W);
  EXPECT_EQ(set.value().enforced, 80_W);
}

TEST_F(SysfsPowerLimitTest, EmptyHugeAndBinaryAttributesAreErrors) {
  for (const auto& content : {std::string(), std::string(1 << 20, '9'), std::string("\0\xff", 2)}) {
    directory_.AddFile("limit", content);
    EXPECT_FALSE(Open().ok());
  }
}

TEST(SysfsTest, EntriesComeInNaturalOrderAndAMissingDirectoryHasNone) {
  const zeus::testing::TemporaryDirectory directory;
  for (const char* name : {"card10", "card2", "renderD128"})
    std::filesystem::create_directory(directory.path() / name);
  const auto cards = ListEntries(directory.path(), "card");
  ASSERT_EQ(cards.size(), 2U);
  EXPECT_EQ(cards[0].filename(), "card2");
  EXPECT_EQ(cards[1].filename(), "card10");
  EXPECT_TRUE(ListEntries(directory.path() / "absent").empty());
}

}  // namespace sysfs_test
}  // namespace zeus
