#include <gtest/gtest.h>

#include <limits>

#include "zeus/device/amd/amdgpu_sysfs.h"
#include "zeus/device/amd/testing/amdgpu_tree.h"

namespace zeus::amd {
namespace gpu_metrics_test {

using ::zeus::testing::GpuMetricsFile;

struct Version {
  unsigned format;
  unsigned content;
};

// The offsets are spelled out here on purpose: the builder of the fixtures must not share a
// mistake with the parser.
std::string Raw(Version version, std::size_t size) {
  std::string bytes(size, '\0');
  bytes[0] = static_cast<char>(size & 0xffU);
  bytes[1] = static_cast<char>(size >> 8U);
  bytes[2] = static_cast<char>(version.format);
  bytes[3] = static_cast<char>(version.content);
  return bytes;
}

TEST(GpuMetricsTest, Versions11To13HaveAveragePower) {
  for (const unsigned content : {1U, 2U, 3U}) {
    std::string bytes = Raw({1, content}, 120);
    bytes[22] = 44;  // 300 W
    bytes[23] = 1;
    bytes[24] = 0x10;
    bytes[31] = 0x01;
    const auto metrics = ParseGpuMetrics(bytes);
    ASSERT_TRUE(metrics.ok()) << metrics.error().message;
    EXPECT_EQ(metrics.value().average_power, Watts(300));
    EXPECT_FALSE(metrics.value().current_power);
    EXPECT_EQ(metrics.value().energy_accumulator, 0x0100000000000010U);
  }
}

TEST(GpuMetricsTest, Version14HasCurrentPower) {
  std::string bytes = Raw({1, 4}, 264);
  bytes[10] = 100;
  bytes[24] = 7;
  const auto metrics = ParseGpuMetrics(bytes).value();
  EXPECT_EQ(metrics.current_power, Watts(100));
  EXPECT_FALSE(metrics.average_power);
  EXPECT_EQ(metrics.energy_accumulator, 7U);
}

TEST(GpuMetricsTest, Versions15And16MovedTheAccumulator) {
  for (const unsigned content : {5U, 6U}) {
    std::string bytes = Raw({1, content}, 300);
    bytes[10] = 100;
    bytes[24] = 7;
    bytes[88] = 9;
    const auto metrics = ParseGpuMetrics(bytes).value();
    EXPECT_EQ(metrics.current_power, Watts(100));
    EXPECT_EQ(metrics.energy_accumulator, 9U);
  }
}

TEST(GpuMetricsTest, AllOnesMeanNotAvailable) {
  const auto metrics =
      ParseGpuMetrics(GpuMetricsFile{.energy = std::numeric_limits<std::uint64_t>::max(),
                                     .watts = std::numeric_limits<std::uint16_t>::max()}
                          .Bytes());
  ASSERT_TRUE(metrics.ok());
  EXPECT_FALSE(metrics.value().energy_accumulator);
  EXPECT_FALSE(metrics.value().average_power);
  EXPECT_FALSE(metrics.value().current_power);
}

TEST(GpuMetricsTest, LayoutsWithoutAnAccumulatorAreRecognised) {
  for (const Version version : {Version{1, 0}, Version{2, 0}, Version{2, 4}}) {
    const auto metrics = ParseGpuMetrics(Raw(version, 264));
    ASSERT_FALSE(metrics.ok());
    EXPECT_EQ(metrics.error().code, ErrorCode::kNotSupported);
    EXPECT_NE(metrics.error().message.find("has no energy accumulator"), std::string::npos);
  }
}

TEST(GpuMetricsTest, UnknownVersionsAreNamed) {
  for (const Version version : {Version{1, 7}, Version{3, 0}, Version{0, 0}, Version{255, 255}}) {
    const auto metrics = ParseGpuMetrics(Raw(version, 264));
    ASSERT_FALSE(metrics.ok());
    EXPECT_EQ(metrics.error().code, ErrorCode::kNotSupported);
  }
  EXPECT_EQ(ParseGpuMetrics(Raw({1, 7}, 264)).error().message,
            "gpu_metrics v1.7 is not known to this version");
}

TEST(GpuMetricsTest, ContentThatContradictsItsHeaderIsRefused) {
  EXPECT_EQ(ParseGpuMetrics("").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(ParseGpuMetrics("abc").error().code, ErrorCode::kUnavailable);
  const std::string good = GpuMetricsFile{}.Bytes();
  ASSERT_TRUE(ParseGpuMetrics(good).ok());
  const auto truncated = ParseGpuMetrics(good.substr(0, 100));
  EXPECT_EQ(truncated.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(truncated.error().message,
            "gpu_metrics v1.3 has 100 bytes, its header says 264, at least 40 are needed");
  EXPECT_FALSE(ParseGpuMetrics(good + "x").ok());
  EXPECT_FALSE(ParseGpuMetrics(Raw({1, 3}, 39)).ok());
  EXPECT_TRUE(ParseGpuMetrics(Raw({1, 3}, 40)).ok());
  EXPECT_FALSE(ParseGpuMetrics(Raw({1, 5}, 103)).ok());
  EXPECT_TRUE(ParseGpuMetrics(Raw({1, 5}, 104)).ok());
}

}  // namespace gpu_metrics_test
}  // namespace zeus::amd
