#include "apps/zeus/train/train_display.h"

#include <gtest/gtest.h>

namespace zeus::cli {
namespace train_display_test {

using namespace zeus::literals;

TEST(StatusLineTest, SaysWhatAPersonWantsToKnow) {
  TrainStatus status{.recurrence = 16, .recurrences = 30, .batch_size = 64, .epoch = 4};
  status.max_epochs = 12;
  status.metric = 0.8123;
  status.target = 0.9;
  status.cost = Joules(12300);
  status.bound = Joules(45000);
  status.limit = Watts(175);
  EXPECT_EQ(ToLine(status, 200),
            "[##########..........] 16/30  batch size 64  epoch 4/12  0.8123 of 0.9  12.3 kJ of at "
            "most 45.0 kJ  175 W");
  EXPECT_EQ(ToLine(status, 10).size(), 10U);
}

}  // namespace train_display_test
}  // namespace zeus::cli
