// Sizes of groups follow a Pareto distribution, mean run times of groups a lognormal one, and run
// times of a group's jobs another around their mean. Jobs of a group follow one another after
// pauses, but for a share that begins while the job before still runs. A group that would not fit
// into the period is compressed, so its jobs overlap more. Every group has a random stream of its
// own, derived from the seed.
#include "zeus/replay/cluster/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/replay/cluster/runtime_clusters.h"

namespace zeus::replay {
namespace {

struct SpecField {
  std::string_view name;
  double least;
  double most;
  double (*get)(const ClusterSpec&);
  void (*set)(ClusterSpec&, double);
};

constexpr double kDay = 86400;
constexpr double kLargestWhole =
    9007199254740991.0;  // 2^53 - 1: every whole number up to here is exact as a double.

constexpr SpecField kFields[] = {
    {"jobs", 1, 5e7, [](const ClusterSpec& spec) { return static_cast<double>(spec.jobs); },
     [](ClusterSpec& spec, double value) { spec.jobs = static_cast<std::int64_t>(value); }},
    {"groups", 1, 5e7, [](const ClusterSpec& spec) { return static_cast<double>(spec.groups); },
     [](ClusterSpec& spec, double value) { spec.groups = static_cast<std::int64_t>(value); }},
    {"seed", 0, kLargestWhole,
     [](const ClusterSpec& spec) { return static_cast<double>(spec.seed); },
     [](ClusterSpec& spec, double value) { spec.seed = static_cast<std::uint64_t>(value); }},
    {"overlap", 0, 1, [](const ClusterSpec& spec) { return spec.overlap; },
     [](ClusterSpec& spec, double value) { spec.overlap = value; }},
    {"size_tail", 0.5, 100, [](const ClusterSpec& spec) { return spec.size_tail; },
     [](ClusterSpec& spec, double value) { spec.size_tail = value; }},
    {"median_runtime", 1, 1e7, [](const ClusterSpec& spec) { return spec.median_runtime.count(); },
     [](ClusterSpec& spec, double value) { spec.median_runtime = Seconds(value); }},
    {"runtime_sigma", 0, 3, [](const ClusterSpec& spec) { return spec.runtime_sigma; },
     [](ClusterSpec& spec, double value) { spec.runtime_sigma = value; }},
    {"job_sigma", 0, 3, [](const ClusterSpec& spec) { return spec.job_sigma; },
     [](ClusterSpec& spec, double value) { spec.job_sigma = value; }},
    {"days", 1, 36500, [](const ClusterSpec& spec) { return spec.period.count() / kDay; },
     [](ClusterSpec& spec, double value) { spec.period = Seconds(value * kDay); }},
};
// The first fields of kFields hold whole numbers.
constexpr std::size_t kWholeFields = 3;

bool IsWhole(const SpecField& field) {
  return &field - std::begin(kFields) < static_cast<std::ptrdiff_t>(kWholeFields);
}

std::string Bound(double bound) { return fmt::format("{:.16g}", bound); }

Status SetField(ClusterSpec& spec, std::string_view part) {
  const std::size_t equals = std::min(part.find('='), part.size());
  const std::string_view name = Trim(part.substr(0, equals));
  const auto* const field = std::ranges::find(kFields, name, &SpecField::name);
  if (field == std::end(kFields))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is no trait of a cluster: jobs, groups, seed, overlap, size_tail, "
                             "median_runtime, runtime_sigma, job_sigma and days are",
                             Quote(name))};
  const auto value = ParseDouble(Trim(part.substr(std::min(equals + 1, part.size()))));
  const bool whole = IsWhole(*field);
  if (!value.ok() || !(value.value() >= field->least && value.value() <= field->most) ||
      (whole && value.value() != std::floor(value.value())))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} must be a {}number from {} to {}: {}", name, whole ? "whole " : "",
                             Bound(field->least), Bound(field->most), Quote(part))};
  field->set(spec, value.value());
  return Ok();
}

// Returns one size per group, each at least 1, with the sum `jobs`. Sizes follow a Pareto
// distribution.
std::vector<std::int64_t> GroupSizes(const ClusterSpec& spec, Random random) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < spec.groups; ++i)
    weights.push_back(std::pow(1.0 - random.Uniform(), -1.0 / spec.size_tail));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto spare = static_cast<double>(spec.jobs - spec.groups);
  std::vector<std::int64_t> sizes;
  for (const double weight : weights)
    sizes.push_back(1 + static_cast<std::int64_t>(spare * weight / total));
  // The largest group absorbs the remainder of the rounding.
  *std::ranges::max_element(sizes) +=
      spec.jobs - std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  return sizes;
}

std::string RandomId(Random& random) {
  return fmt::format("{:016x}{:016x}", random.NextBits(), random.NextBits());
}

// Draws from a lognormal distribution with mean 1.
double DrawFactor(double sigma, Random& random) {
  return std::exp(sigma * random.Normal() - sigma * sigma / 2);
}

// Lays the jobs of a group one after the other, except for those that overlap, without regard to
// the length of the period; AddGroup() compresses what is too long.
std::vector<ClusterJob> LaySequence(const ClusterSpec& spec, std::int64_t size, Random& random) {
  const Seconds mean = spec.median_runtime * std::exp(spec.runtime_sigma * random.Normal());
  const Seconds busy = mean * static_cast<double>(size) * (1 - spec.overlap);
  const Seconds spare = spec.period - busy;
  const Seconds gap = std::max(mean * 0.1, spare / static_cast<double>(size));
  std::vector<ClusterJob> jobs;
  Seconds start = gap * random.Uniform();
  Seconds latest_end{};
  for (std::int64_t i = 0; i < size; ++i) {
    const Seconds runtime(std::ceil((mean * DrawFactor(spec.job_sigma, random)).count()));
    jobs.push_back({.start = start, .end = start + runtime});
    latest_end = std::max(latest_end, start + runtime);
    start = random.Uniform() < spec.overlap ? start + runtime * random.Uniform()
                                            : latest_end + gap * -std::log(1.0 - random.Uniform());
  }
  return jobs;
}

// Adds a group. One that does not fit into the period submits faster, so that more of its jobs
// overlap.
void AddGroup(const ClusterSpec& spec, std::int64_t size, Random random,
              ClusterTraceBuilder& builder) {
  const std::size_t group = builder.Group(RandomId(random), {});
  const std::vector<ClusterJob> jobs = LaySequence(spec, size, random);
  const double faster = std::max(1.0, jobs.back().start / spec.period);
  for (const ClusterJob& job : jobs) {
    // Clusters record whole seconds.
    const Seconds start(std::floor(job.start.count() / faster));
    builder.Add(group, {.start = start, .end = start + (job.end - job.start)});
  }
}

}  // namespace

Result<ClusterSpec> ParseClusterSpec(std::string_view text) {
  ClusterSpec spec;
  std::set<std::string_view> given;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    ZEUS_RETURN_IF_ERROR(SetField(spec, part));
    const std::string_view name = Trim(part.substr(0, part.find('=')));
    if (!given.insert(name).second)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} is given twice: give it once", name)};
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (spec.groups > spec.jobs)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} groups need at least as many jobs: {} are too few", spec.groups,
                             spec.jobs)};
  return spec;
}

std::string ToText(const ClusterSpec& spec) {
  std::string text;
  for (const SpecField& field : kFields)
    // Whole numbers get sixteen digits, fractions fifteen: a sixteenth would show how doubles are
    // rounded.
    text += fmt::format("{}{}={:.{}g}", text.empty() ? "" : ",", field.name, field.get(spec),
                        IsWhole(field) ? 16 : 15);
  return text;
}

ClusterTrace GenerateCluster(const ClusterSpec& spec, std::span<const std::string> workloads) {
  const Random random(spec.seed);
  ClusterTraceBuilder builder;
  const std::vector<std::int64_t> sizes = GroupSizes(spec, random.Fork("sizes"));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    AddGroup(spec, sizes[i], random.Fork(fmt::format("group {}", i)), builder);
  ClusterTrace trace = std::move(builder).Finish();
  AssignWorkloads(trace, workloads);
  return trace;
}

}  // namespace zeus::replay
