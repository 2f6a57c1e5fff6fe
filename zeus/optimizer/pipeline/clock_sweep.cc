#include "zeus/optimizer/pipeline/clock_sweep.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace zeus::pipeline {
namespace {

Joules Effective(const OperatingPoint& point, Watts blocking) {
  return point.energy - blocking * point.time;
}

bool Beats(const OperatingPoint& a, const OperatingPoint& b, Watts blocking) {
  const Joules cost_a = Effective(a, blocking);
  const Joules cost_b = Effective(b, blocking);
  return a.time <= b.time && cost_a <= cost_b && (a.time < b.time || cost_a < cost_b);
}

}  // namespace

ClockSweep::ClockSweep(std::vector<Hertz> clocks, SweepRules rules)
    : clocks_(std::move(clocks)), rules_(rules) {}

bool ClockSweep::KnowsEnough(const std::vector<InstructionEstimate>& estimates,
                             int iterations) const {
  if (iterations >= rules_.most_iterations) return true;
  const auto known = [this](const InstructionEstimate& estimate) {
    return estimate.repetitions >= rules_.least_repetitions &&
           estimate.time_sigma <= rules_.relative_error * estimate.time &&
           estimate.power_sigma <= rules_.relative_error * estimate.power;
  };
  return !estimates.empty() && std::ranges::all_of(estimates, known);
}

void ClockSweep::Record(std::vector<InstructionEstimate> estimates) {
  measured_.push_back({.clock = clock(), .estimates = std::move(estimates)});
}

int ClockSweep::SinceLeast(const std::string& instruction, Watts blocking) const {
  std::optional<Joules> least;
  int since = 0;
  for (const Measured& measured : measured_) {
    const auto found =
        std::ranges::find(measured.estimates, instruction, &InstructionEstimate::instruction);
    if (found == measured.estimates.end()) continue;
    const Joules cost = found->energy() - blocking * found->time;
    const bool less = !least || cost < *least;
    if (less) least = cost;
    since = less ? 0 : since + 1;
  }
  return since;
}

bool ClockSweep::WantsLower(Watts blocking) const {
  if (AtLowest() || measured_.empty()) return false;
  return std::ranges::any_of(measured_.back().estimates, [&](const InstructionEstimate& estimate) {
    return SinceLeast(estimate.instruction, blocking) < rules_.clocks_without_gain;
  });
}

void DropDominated(PipelineProfile& profile) {
  for (InstructionProfile& instruction : profile.instructions) {
    const std::vector<OperatingPoint> all = instruction.points;
    const auto highest = std::ranges::max_element(all, {}, &OperatingPoint::clock);
    std::erase_if(instruction.points, [&](const OperatingPoint& point) {
      return point.clock != highest->clock &&
             std::ranges::any_of(all, [&](const OperatingPoint& other) {
               return Beats(other, point, profile.blocking_power);
             });
    });
  }
}

}  // namespace zeus::pipeline
