// A setting has a record of slices on this rank: steps, time, energy, and the scatter of step
// times. A point of the profile combines the records of all ranks: energies are added, the time of
// a step is that of the slowest rank. Its sigma has two parts: the error of the measurements, and
// the scatter of steps, which is pooled over all settings because a slice may hold only two of
// them.
#include "zeus/optimizer/power_limit/profile_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace zeus {
namespace {

// Number of sums and maxima for each record in Gathered.
constexpr std::size_t kSums = 3;
constexpr std::size_t kMaxima = 2;

double Square(Joules value) { return value.value() * value.value(); }

}  // namespace

ProfileBuilder::ProfileBuilder(const std::vector<Setting>& settings, Profile known,
                               double least_scatter)
    : least_scatter_(least_scatter), profile_(std::move(known)) {
  for (const Setting& setting : settings) {
    records_.emplace_back(setting);
    const auto found = std::ranges::find(profile_.points, setting, &ProfilePoint::setting);
    known_.push_back(found == profile_.points.end() ? std::nullopt : std::optional(*found));
  }
  profile_.points.clear();
  for (const auto& point : known_)
    if (point) profile_.points.push_back(*point);
  profile_.complete = profile_.complete && profile_.points.size() == settings.size();
}

bool ProfileBuilder::HasAll() const {
  for (std::size_t i = 0; i < records_.size(); ++i)
    if (!known_[i] && records_[i].slices().empty()) return false;
  return true;
}

std::optional<std::size_t> ProfileBuilder::Find(const Setting& setting) const {
  const auto found = std::ranges::find(records_, setting, &SettingRecord::setting);
  if (found == records_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - records_.begin());
}

std::optional<std::size_t> ProfileBuilder::FindPosition(std::size_t setting) const {
  const auto found =
      std::ranges::find(profile_.points, records_[setting].setting(), &ProfilePoint::setting);
  if (found == profile_.points.end()) return std::nullopt;
  return static_cast<std::size_t>(found - profile_.points.begin());
}

// Returns the standard deviation of step times relative to their mean, pooled over all settings,
// because a single slice may have only two steps.
double ProfileBuilder::ScatterOfSteps() const {
  double squares = 0;
  std::int64_t freedom = 0;
  for (const SettingRecord& record : records_) {
    squares += record.times().RelativeSquares();
    freedom += std::max<std::int64_t>(record.steps() - 1, 0);
  }
  return freedom > 0 ? std::sqrt(squares / static_cast<double>(freedom)) : 0.0;
}

Result<ProfileBuilder::Gathered> ProfileBuilder::Gather(SliceMeter& meter, Agreement& ranks) {
  Gathered gathered;
  Status outcome = Ok();
  for (SettingRecord& record : records_) {
    SliceReading reading;
    if (auto read = record.Read(meter); read.ok())
      reading = read.value();
    else
      outcome = std::move(read).error();
    for (const double sum :
         {reading.energy.value(), Square(reading.sigma), Square(reading.shared_sigma)})
      gathered.sums.push_back(sum);
    gathered.maxima.push_back(reading.time.count());
    gathered.maxima.push_back(reading.final ? 0.0 : 1.0);
  }
  gathered.maxima.push_back(ScatterOfSteps());
  ZEUS_RETURN_IF_ERROR(ranks.Together(std::move(outcome)));
  ZEUS_RETURN_IF_ERROR(ranks.Sum(gathered.sums));
  ZEUS_RETURN_IF_ERROR(ranks.Max(gathered.maxima));
  return gathered;
}

Result<bool> ProfileBuilder::Update(SliceMeter& meter, const StepSource& source) {
  bool final = true;
  Joules energy(0);
  Joules shared(0);
  profile_.points.clear();
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (known_[i]) {
      profile_.points.push_back(*known_[i]);
      continue;
    }
    ZEUS_TRY(const SliceReading reading, records_[i].Read(meter, &source));
    if (const auto point = records_[i].ObservedPoint()) profile_.points.push_back(*point);
    energy += reading.energy;
    shared += reading.shared_sigma;
    final = final && reading.final;
  }
  if (energy > Joules(0)) profile_.shared_error = shared / energy;
  return final;
}

Result<bool> ProfileBuilder::Update(SliceMeter& meter, Agreement& ranks,
                                    std::optional<std::size_t> open) {
  ZEUS_TRY(const Gathered gathered, Gather(meter, ranks));
  const double scatter = std::max(gathered.maxima.back(), least_scatter_);
  bool final = true;
  double energy = 0;
  double shared = 0;
  profile_.points.clear();
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (known_[i]) profile_.points.push_back(*known_[i]);
    const auto steps = static_cast<double>(records_[i].steps());
    if (known_[i] || steps == 0 || i == open) continue;
    const double* sums = &gathered.sums[i * kSums];
    const double* maxima = &gathered.maxima[i * kMaxima];
    const double step_error = scatter / std::sqrt(steps);
    const Seconds time(maxima[0] / steps);
    const Joules per_step(sums[0] / steps);
    // The measured steps are a sample: steps that differ in time also differ in energy.
    const Joules sigma(std::hypot(std::sqrt(sums[1]) / steps, per_step.value() * step_error));
    profile_.points.push_back({.setting = records_[i].setting(),
                               .steps = records_[i].steps(),
                               .time_per_step = time,
                               .time_sigma = time * step_error,
                               .energy_per_step = per_step,
                               .energy_sigma = sigma});
    energy += sums[0];
    shared += std::sqrt(sums[2]);
    final = final && maxima[1] == 0.0;
  }
  if (energy > 0) profile_.shared_error = shared / energy;
  return final;
}

Result<double> ProfileBuilder::EnergyPrecision(std::size_t setting,
                                               const std::optional<SliceReading>& open,
                                               SliceMeter& meter, Agreement& ranks) {
  const auto before = records_[setting].Read(meter);
  std::vector<double> sums{0, std::numeric_limits<double>::infinity()};
  if (before.ok() && open) {
    const SliceReading all = before.value() + *open;
    sums = {all.energy.value(), Square(all.sigma)};
  }
  ZEUS_RETURN_IF_ERROR(ranks.Sum(sums));
  return sums[0] > 0 ? std::sqrt(sums[1]) / sums[0] : std::numeric_limits<double>::infinity();
}

}  // namespace zeus
