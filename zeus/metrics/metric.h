#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zeus {

enum class MetricType { kCounter, kGauge, kHistogram };
const char* MetricTypeName(MetricType type);  // Returns "counter", …

// Name and meaning of a metric. metric_catalogue.h lists all metrics of Zeus.
struct MetricDescription {
  std::string_view name;
  MetricType type;
  std::string_view labels;  // Names of its labels, for the documentation: "gpu, uuid, model".
  std::string_view help;
};

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// A histogram of Prometheus: counts of values by size. One owner.
class Histogram {
 public:
  // `bounds` ascend; the last bucket is without bound.
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1, 0) {}

  void Observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  // The number of values up to each bound, and of all values at the end.
  std::vector<unsigned long long> Cumulative() const;
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<unsigned long long> counts_;
  double sum_ = 0;
};

// The values of metrics at one moment, and their text for Prometheus (exposition format 0.0.4). The
// reason for writing the text here instead of using a client library is in
// docs/adr/0031-libraries-or-our-own.md. One owner.
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
  Family& FindOrAddFamily(const MetricDescription& metric);

  std::vector<Family> families_;
};

// Escapes the value of a label for its place between quotation marks. Bytes that are not UTF-8 are
// replaced.
std::string EscapeLabel(std::string_view value);

}  // namespace zeus
