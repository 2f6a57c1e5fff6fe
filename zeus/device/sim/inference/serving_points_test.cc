#include "zeus/device/sim/testing/serving_points.h"

#include <gtest/gtest.h>

#include "zeus/base/file.h"
#include "zeus/base/testing/places.h"

namespace zeus::sim {
namespace {

// Recorded points are where ZEUS_LLM_DIR says, or beside the repository.
class ServingPointsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto file = zeus::testing::RecordedData("ZEUS_LLM_DIR", "llm") / "serving_points.csv";
    const auto text = ReadSmallFile(file, 1 << 20);
    if (!text.ok()) GTEST_SKIP() << "no recorded serving points: " << text.error().message;
    auto points = testing::ParseServingPoints(text.value(), "H100");
    ASSERT_TRUE(points.ok()) << points.error().message;
    points_ = std::move(points).value();
  }

  template <class Wanted>
  std::vector<testing::PointError> Errors(Wanted wanted) const {
    std::vector<testing::PointError> errors;
    for (const testing::ServingPoint& point : points_)
      if (wanted(point)) errors.push_back(testing::Compare(point));
    return errors;
  }

  std::vector<testing::ServingPoint> points_;
};

TEST_F(ServingPointsTest, DenseModelsAreMetWithinFivePerCent) {
  const auto errors = Errors([](const auto& point) { return !point.model->mixture(); });
  ASSERT_GE(errors.size(), 60U);
  const auto time = testing::Summarize(errors, &testing::PointError::time);
  const auto energy = testing::Summarize(errors, &testing::PointError::energy);
  EXPECT_LE(time.median, 0.05);
  EXPECT_LE(time.percentile_95, 0.15);
  EXPECT_LE(energy.median, 0.05);
  EXPECT_LE(energy.percentile_95, 0.15);
}

TEST_F(ServingPointsTest, MixturesOfExpertsAreMetWithinTenPerCent) {
  for (const bool packed : {false, true}) {
    SCOPED_TRACE(packed ? "8 and 4 bits" : "16 bits");
    const auto errors = Errors([packed](const auto& point) {
      return point.model->mixture() && point.model->packed() == packed;
    });
    ASSERT_GE(errors.size(), 50U);
    EXPECT_LE(testing::Summarize(errors, &testing::PointError::time).median, 0.10);
    EXPECT_LE(testing::Summarize(errors, &testing::PointError::energy).median, 0.10);
  }
}

}  // namespace
}  // namespace zeus::sim
