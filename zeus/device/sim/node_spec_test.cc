#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "zeus/device/sim/node_layout.h"

namespace zeus::sim {
namespace node_spec_test {

using ::testing::HasSubstr;

TEST(NodeSpecTest, AGpuListKeepsItsOrderAndCounts) {
  const auto gpus = ParseGpuList("2xA100, V100,1xrtx6000");

  ASSERT_TRUE(gpus.ok()) << gpus.error().message;
  EXPECT_EQ(FormatGpuList(gpus.value()), "2xA100,1xV100,1xRTX6000");
}

class BadGpuListTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BadGpuListTest, IsRefusedWithTheTextQuoted) {
  const auto gpus = ParseGpuList(GetParam());

  ASSERT_FALSE(gpus.ok());
  EXPECT_EQ(gpus.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(gpus.error().message, HasSubstr(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(NodeSpec, BadGpuListTest,
                         ::testing::Values("", ",", "4x", "x", "0xV100", "xV100", "4xFOO", "V100,",
                                           "65xV100", "40xV100,40xA100", "-1xV100",
                                           "99999999999999999999xV100", "4 x V100"));

TEST(NodeSpecTest, ANameIsAFileNameAndNothingMore) {
  EXPECT_TRUE(CheckNodeName("ci-job_7.a").ok());
  for (const std::string& name : {std::string(), std::string("a/b"), std::string("a b"),
                                  std::string("a\n"), std::string(65, 'a')}) {
    EXPECT_FALSE(CheckNodeName(name).ok()) << name;
  }
}

TEST(NodeSpecTest, TheTimeScaleIsPositiveAndFinite) {
  NodeSpec spec{.gpus = ParseGpuList("V100").value(), .seed = 0, .time_scale = 1, .ambient = {}};
  EXPECT_TRUE(CheckNodeSpec(spec).ok());
  for (const double scale : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    spec.time_scale = scale;
    EXPECT_FALSE(CheckNodeSpec(spec).ok()) << scale;
  }
}

}  // namespace node_spec_test
}  // namespace zeus::sim
