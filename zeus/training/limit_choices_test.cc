#include "zeus/training/testing/limit_choices.h"

#include <gtest/gtest.h>

namespace zeus::testing {
namespace limit_choices_test {

class LimitChoicesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LimitChoicesTest, TheChosenLimitCostsAtMostOnePercentMoreThanTheBest) {
  const sim::GpuModel& model = *sim::FindGpuModel(GetParam()).value();
  for (const sim::Workload& workload : sim::Workloads()) {
    const LimitChoices choices = ChooseLimits(model, workload);
    for (std::size_t i = 0; i < kEtas.size(); ++i)
      EXPECT_LE(choices.excess[i].of_tried, 1.0) << workload.name << ", eta " << kEtas[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, LimitChoicesTest, ::testing::ValuesIn(kRecordedGpuModels),
                         [](const auto& gpu) { return std::string(gpu.param); });

}  // namespace limit_choices_test
}  // namespace zeus::testing
