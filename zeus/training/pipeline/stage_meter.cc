#include "zeus/training/pipeline/stage_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/statistics.h"
#include "zeus/optimizer/pipeline/power_attribution.h"

namespace zeus {
namespace {

using pipeline::PowerAttribution;

// The errors of devices are independent, so their variances add up.
Watts CombineSigmas(Watts a, Watts b) { return Watts(std::hypot(a.value(), b.value())); }

}  // namespace

StageMeter::StageMeter(EnergyMonitor& monitor, std::vector<std::size_t> devices)
    : monitor_(monitor), devices_(std::move(devices)), from_(monitor.clock().Now()) {}

void StageMeter::StartOver(int instructions) {
  spans_.clear();
  open_.reset();
  skipped_ = instructions;
  from_ = monitor_.clock().Now();
}

std::size_t StageMeter::KindIndex(std::string_view instruction) {
  const auto found = std::ranges::find(kinds_, instruction);
  if (found != kinds_.end()) return static_cast<std::size_t>(found - kinds_.begin());
  kinds_.emplace_back(instruction);
  return kinds_.size() - 1;
}

void StageMeter::Begin(std::string_view instruction) {
  const TimePoint now = monitor_.clock().Now();
  open_ = Span{.kind = KindIndex(instruction), .begin = now, .end = now};
}

void StageMeter::End(std::string_view instruction) {
  if (!open_ || kinds_[open_->kind] != instruction) return;
  open_->end = monitor_.clock().Now();
  if (skipped_ > 0) {
    --skipped_;
    from_ = open_->end;
  } else {
    spans_.push_back(*open_);
  }
  open_.reset();
}

std::vector<Seconds> StageMeter::Exposure(TimePoint begin, TimePoint end,
                                          std::size_t& first) const {
  std::vector<Seconds> exposure(kinds_.size() + 1, Seconds(0));
  Seconds waiting = end - begin;
  while (first < spans_.size() && spans_[first].end <= begin) ++first;
  for (std::size_t i = first; i < spans_.size() && spans_[i].begin < end; ++i) {
    const Seconds inside = std::min(end, spans_[i].end) - std::max(begin, spans_[i].begin);
    exposure[spans_[i].kind] += inside;
    waiting -= inside;
  }
  exposure.back() = std::max(waiting, Seconds(0));
  return exposure;
}

void StageMeter::AddPowers(std::size_t device, Reading& reading) const {
  const TimePoint until = spans_.back().end;
  const auto samples =
      monitor_.History(device, EnergyMonitor::Quantity::kPower, from_, monitor_.clock().Now());
  PowerAttribution attribution(kinds_.size() + 1);
  std::size_t first = 0;
  // A sample holds until the next one; how long the last one holds is not known.
  for (std::size_t i = 0; i + 1 < samples.size(); ++i) {
    const TimePoint begin = samples[i].time;
    const TimePoint end = samples[i + 1].time;
    if (begin < from_ || end > until) continue;
    attribution.Add(Exposure(begin, end, first), Watts(samples[i].value) * (end - begin));
  }
  const auto powers = attribution.Solve();
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    pipeline::InstructionEstimate& estimate = reading.instructions[kind];
    estimate.power += powers[kind].power;
    estimate.power_sigma = CombineSigmas(estimate.power_sigma, powers[kind].sigma);
  }
  reading.waiting.power += powers.back().power;
  reading.waiting.sigma = CombineSigmas(reading.waiting.sigma, powers.back().sigma);
}

StageMeter::Reading StageMeter::Read() const {
  Reading reading;
  std::vector<std::vector<double>> times(kinds_.size());
  for (const Span& span : spans_) times[span.kind].push_back((span.end - span.begin).count());
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const SampleSummary summary = Summarize(times[kind]);
    reading.instructions.push_back({.instruction = kinds_[kind],
                                    .repetitions = static_cast<int>(summary.count),
                                    .time = Seconds(summary.mean),
                                    .time_sigma = Seconds(summary.StandardError())});
  }
  if (spans_.empty()) return reading;
  for (const std::size_t device : devices_) AddPowers(device, reading);
  return reading;
}

}  // namespace zeus
