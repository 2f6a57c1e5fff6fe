#include "zeus/export/prometheus.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "zeus/export/testing/records.h"

namespace zeus {
namespace prometheus_test {

using ::testing::HasSubstr;
using ::testing::Not;
using zeus::testing::ASample;
using zeus::testing::AWindow;

std::string TextOf(const Sample& sample) {
  MetricSet set;
  AddSample(sample, set);
  return set.Text();
}

std::string TextOf(const WindowMetrics& windows) {
  MetricSet set;
  windows.AddTo(set);
  return set.Text();
}

TEST(PrometheusTest, AGpuIsDescribedByItsLabels) {
  const std::string text = TextOf(ASample());
  EXPECT_THAT(text, HasSubstr("zeus_gpu_energy_joules_total{gpu=\"0\",uuid=\"GPU-1\","
                              "model=\"A100\",source=\"counter\"} 1000\n"));
  EXPECT_THAT(text, HasSubstr("kind=\"update\"} 250\n"));
  EXPECT_THAT(text, HasSubstr("kind=\"instant\"} 251\n"));
  EXPECT_THAT(text, HasSubstr("kind=\"enforced\"} 280\n"));
  EXPECT_THAT(text, HasSubstr("kind=\"max\"} 400\n"));
  EXPECT_THAT(text, HasSubstr("domain=\"graphics\"} 1410000000\n"));
  EXPECT_THAT(text, HasSubstr("zeus_cpu_energy_joules_total{cpu=\"0\",zone=\"package\""));
}

TEST(PrometheusTest, ALostGpuIsDownAndHasNoSeriesThatLookLikeZero) {
  const std::string text = TextOf(ASample());
  EXPECT_THAT(text, HasSubstr("zeus_device_up{device=\"gpu:0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("zeus_device_up{device=\"gpu:1\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("GPU-2")));
}

TEST(PrometheusTest, TheNamesOfTheReferenceAreThereToo) {
  const std::string text = TextOf(ASample());
  EXPECT_THAT(text, HasSubstr("energy_monitor_gpu_energy_joules_total{window=\"all\",index=\"0\"} "
                              "1000\n"));
  EXPECT_THAT(text, HasSubstr("power_monitor_gpu_power_watts{window=\"all\",index=\"0\"} 250\n"));
}

TEST(PrometheusTest, WindowsAreCountedByNameAndDevice) {
  WindowMetrics windows;
  for (int i = 0; i < 3; ++i) windows.Observe(AWindow("step"));
  const std::string text = TextOf(windows);
  EXPECT_THAT(text,
              HasSubstr("zeus_window_energy_joules_count{window=\"step\",device=\"gpu:0\"} 3\n"));
  EXPECT_THAT(text,
              HasSubstr("zeus_window_energy_joules_sum{window=\"step\",device=\"cpu:0\"} 60\n"));
  EXPECT_THAT(text, HasSubstr("energy_monitor_gpu_energy_joules_bucket{window=\"step\",index=\"0\","
                              "le=\"100\"} 3\n"));
  EXPECT_THAT(text,
              HasSubstr("energy_monitor_gpu_energy_joules_total{window=\"step\",index=\"0\"} 300"));
  EXPECT_THAT(text, Not(HasSubstr("device=\"gpu:1\"")));
}

TEST(PrometheusTest, ANamePerStepDoesNotGrowWithoutBound) {
  WindowMetrics windows(2);
  for (int i = 0; i < 10; ++i) windows.Observe(AWindow(fmt::format("step {}", i)));
  const std::string text = TextOf(windows);
  EXPECT_THAT(text, HasSubstr("window=\"step 1\""));
  EXPECT_THAT(text, Not(HasSubstr("window=\"step 2\"")));
  EXPECT_THAT(text,
              HasSubstr("zeus_window_energy_joules_count{window=\"other\",device=\"gpu:0\"} 8\n"));
}

TEST(PrometheusTest, AWindowCalledAllIsNotTheWholeRecording) {
  WindowMetrics windows;
  windows.Observe(AWindow("all"));
  EXPECT_THAT(TextOf(windows), HasSubstr("energy_monitor_gpu_energy_joules_total{window=\"window "
                                         "all\",index=\"0\"} 100\n"));
}

TEST(PrometheusTest, TheProcessTellsItsVersionAndCost) {
  MetricSet set;
  AddProcess("1.2.3", Seconds(0.5), set);
  EXPECT_THAT(set.Text(), HasSubstr("zeus_self_cpu_seconds_total 0.5\n"));
  EXPECT_THAT(set.Text(), HasSubstr("zeus_build_info{version=\"1.2.3\"} 1\n"));
}

}  // namespace prometheus_test
}  // namespace zeus
