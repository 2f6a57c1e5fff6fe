#include "zeus/device/knobs/guarded_knob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus {
namespace guarded_knob_test {

using namespace zeus::literals;
using ::testing::HasSubstr;

class ScopedPowerLimitTest : public ::testing::Test {
 protected:
  Watts Requested() { return gpu_.CurrentPowerLimit().value().requested; }

  VirtualClock clock_;
  sim::SimulatedGpu gpu_{clock_, sim::testing::Model("A100")};
};

TEST_F(ScopedPowerLimitTest, TheLimitBeforeComesBackNotTheDefault) {
  ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(300_W).ok());
  {
    const auto scope = ScopedPowerLimit::Set(gpu_, 150_W);
    ASSERT_TRUE(scope.ok());
    EXPECT_EQ(Requested(), 150_W);
  }
  EXPECT_EQ(Requested(), 300_W);
}

TEST_F(ScopedPowerLimitTest, RestoringEarlyIsDoneOnce) {
  {
    auto scope = ScopedPowerLimit::Set(gpu_, 150_W).value();
    EXPECT_TRUE(scope.Restore().ok());
    EXPECT_EQ(Requested(), 400_W);
    ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(200_W).ok());
    EXPECT_TRUE(scope.Restore().ok());
  }
  EXPECT_EQ(Requested(), 200_W);
}

TEST_F(ScopedPowerLimitTest, ALimitThatCannotBeRestoredSaysWhy) {
  auto scope = ScopedPowerLimit::Set(gpu_, 150_W).value();
  gpu_.InjectFault({.kind = sim::FaultKind::kNoPermission});
  const Status restored = scope.Restore();

  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().code, ErrorCode::kPermissionDenied);
  EXPECT_THAT(restored.error().message, HasSubstr("restore the power limit of gpu:0"));
}

TEST_F(ScopedPowerLimitTest, AMovedScopeRestoresOnce) {
  {
    auto scope = ScopedPowerLimit::Set(gpu_, 150_W).value();
    const ScopedPowerLimit moved = std::move(scope);
    EXPECT_EQ(Requested(), 150_W);
  }
  EXPECT_EQ(Requested(), 400_W);
}

}  // namespace guarded_knob_test
}  // namespace zeus
