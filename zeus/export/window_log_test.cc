#include "zeus/export/window_log.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/export/testing/records.h"

namespace zeus {
namespace window_log_test {

using zeus::testing::AWindow;
using zeus::testing::TemporaryDirectory;

class WindowLogTest : public ::testing::Test {
 protected:
  std::string Logged(const Measurement& window, WindowColumns columns) {
    auto log = std::move(WindowLog::Open(path_, {"cpu:0", "gpu:0", "gpu:1"}, columns)).value();
    EXPECT_TRUE(log->Write(window).ok());
    return ReadSmallFile(path_).value();
  }

  TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "windows.csv";
};

TEST_F(WindowLogTest, HasTheColumnsOfTheReferenceAndNoZeroForALostGpu) {
  EXPECT_EQ(Logged(AWindow("epoch"), WindowColumns::kReference),
            "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n"
            "1700000000.250000,epoch,10,100,\n");
}

TEST_F(WindowLogTest, ExtendedColumnsFollowThoseOfTheReference) {
  Measurement window = AWindow("epoch");
  EnergyEstimate reset = zeus::testing::AnEstimate(Joules(20));
  reset.flags.Set(MeasurementFlag::kCounterReset);
  reset.flags.Set(MeasurementFlag::kShortWindow);
  window.devices[2].energy = reset;
  EXPECT_EQ(Logged(window, WindowColumns::kExtended),
            "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy,cpu0_energy,"
            "gpu0_sigma,gpu1_sigma,cpu0_sigma,flags\n"
            "1700000000.250000,epoch,10,100,,20,2,,2,counter_reset short_window\n");
}

TEST_F(WindowLogTest, NamesAreQuoted) {
  EXPECT_NE(Logged(AWindow("a,\"b\""), WindowColumns::kReference).find(",\"a,\"\"b\"\"\",10,"),
            std::string::npos);
}

TEST_F(WindowLogTest, OtherColumnsInTheSameFileAreRefused) {
  Logged(AWindow("epoch"), WindowColumns::kReference);
  const auto other = WindowLog::Open(path_, {"gpu:0"});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace window_log_test
}  // namespace zeus
