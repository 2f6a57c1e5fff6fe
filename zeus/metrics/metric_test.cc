#include "zeus/metrics/metric.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <set>
#include <string>

#include "zeus/metrics/metric_catalogue.h"

namespace zeus {
namespace metric_test {

constexpr MetricDescription kPower{"power_watts", MetricType::kGauge, "gpu", "Power."};
constexpr MetricDescription kSize{"size_joules", MetricType::kHistogram, "", "Size."};

TEST(MetricTest, AFamilyIsDescribedOnce) {
  MetricSet set;
  set.Add(kPower, {{"gpu", "0"}}, 250.5);
  set.Add(kPower, {{"gpu", "1"}}, std::numeric_limits<double>::infinity());
  EXPECT_EQ(set.Text(),
            "# HELP power_watts Power.\n# TYPE power_watts gauge\n"
            "power_watts{gpu=\"0\"} 250.5\npower_watts{gpu=\"1\"} +Inf\n");
}

TEST(MetricTest, BucketsOfAHistogramAddUp) {
  constexpr std::array kBounds = {1.0, 10.0};
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 5.0, 50.0}) histogram.Observe(value);
  MetricSet set;
  set.Add(kSize, {{"window", "a"}}, histogram);
  EXPECT_EQ(set.Text(),
            "# HELP size_joules Size.\n# TYPE size_joules histogram\n"
            "size_joules_bucket{window=\"a\",le=\"1\"} 2\n"
            "size_joules_bucket{window=\"a\",le=\"10\"} 3\n"
            "size_joules_bucket{window=\"a\",le=\"+Inf\"} 4\n"
            "size_joules_sum{window=\"a\"} 56.5\nsize_joules_count{window=\"a\"} 4\n");
}

TEST(MetricTest, OddLabelsAreEscapedAndBytesThatAreNoTextReplaced) {
  EXPECT_EQ(EscapeLabel("a\\b\"c\nd"), R"(a\\b\"c\nd)");
  EXPECT_EQ(EscapeLabel("50 \xc2\xb0\xff"), "50 \xc2\xb0\xef\xbf\xbd");
}

TEST(MetricTest, NamesOfTheCatalogueDoNotClash) {
  std::set<std::string> exposed;
  for (const MetricDescription* metric : metrics::kAll) {
    const std::string name(metric->name);
    if (metric->type != MetricType::kHistogram) {
      EXPECT_TRUE(exposed.insert(name).second) << name;
      continue;
    }
    for (const char* suffix : {"_bucket", "_sum", "_count"})
      EXPECT_TRUE(exposed.insert(name + suffix).second) << name;
  }
}

TEST(MetricTest, OnlyCountersEndInTotal) {
  for (const MetricDescription* metric : metrics::kAll)
    EXPECT_EQ(metric->name.ends_with("_total"), metric->type == MetricType::kCounter)
        << metric->name;
}

}  // namespace metric_test
}  // namespace zeus
