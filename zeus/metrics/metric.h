#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zeus {

enum class MetricType { kCounter, kGauge, kHistogram };
const char* MetricTypeName(MetricType type);  // "counter", …

// What a metric is called and means. All of ours are in metric_catalogue.h.
struct MetricDescription {
  std::string_view name;
  MetricType type;
  std::string_view labels;  // For people: "gpu, uuid, model".
  std::string_view help;
};

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// Counts of values by size. One owner.
class Histogram {
 public:
  // `bounds` ascend; the last bucket is without bound.
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1, 0) {}

  void Observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  // Values up to the bound with that number; of all for the last.
  std::vector<unsigned long long> Cumulative() const;
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<unsigned long long> counts_;
  double sum_ = 0;
};

// Values of metrics at one moment, and their text for Prometheus (exposition format 0.0.4). Written
// by us because our counters come as totals that the devices count, while client libraries own
// theirs and only let them be incremented. One owner.
class MetricSet {
 public:
  void Add(const MetricDescription& metric, const Labels& labels, double value);
  void Add(const MetricDescription& metric, const Labels& labels, const Histogram& histogram);

  // Families in the order of their first value, each with its HELP and TYPE.
  std::string Text() const;

  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Family {
    const MetricDescription* metric;
    std::string lines;
  };
  Family& FamilyOf(const MetricDescription& metric);

  std::vector<Family> families_;
};

// A label's value between its quotation marks: what is special is escaped, bytes that are not UTF-8
// are replaced.
std::string EscapeLabel(std::string_view value);

}  // namespace zeus
