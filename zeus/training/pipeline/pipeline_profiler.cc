#include "zeus/training/pipeline/pipeline_profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "zeus/base/log.h"
#include "zeus/base/statistics.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/power_attribution.h"
#include "zeus/optimizer/pipeline/profile_csv.h"

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

namespace {

using pipeline::InstructionEstimate;

constexpr const char* kHeader =
    "rank,dp_rank,pp_rank,tp_rank,stage,instruction,frequency,time,energy\n";

// A power with a larger relative error is unusable.
constexpr double kLargestPowerError = 0.5;

// A blocking power with a larger relative error also uses the measurements at lower clocks.
constexpr double kLargestBlockingError = 0.02;

}  // namespace

PipelineProfiler::PipelineProfiler(Parts parts, Options options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      ranks_(parts_.collective),
      meter_(parts_.monitor, parts_.devices),
      waiting_{0, 0} {
  Start();
}

void PipelineProfiler::Start() {
  const auto settings = parts_.knob.Settings(options_.stride);
  if (!settings.ok()) {
    trouble_ = settings.error();  // Proceed() shares it with the other ranks.
    return;
  }
  std::vector<Hertz> clocks;
  for (const Setting& setting : settings.value()) clocks.push_back(std::get<Hertz>(setting));
  sweep_.emplace(std::move(clocks), options_.rules);
  parts_.setter.Request(sweep_->clock());
}

void PipelineProfiler::OnInstructionBegin(std::string_view instruction) {
  if (done_) return;
  if (options_.synchronize) options_.synchronize();
  meter_.Begin(instruction);
}

void PipelineProfiler::OnInstructionEnd(std::string_view instruction) {
  if (done_) return;
  if (options_.synchronize) options_.synchronize();
  meter_.End(instruction);
}

void PipelineProfiler::OnStepEnd() {
  if (done_) return;
  ++all_iterations_;
  if (const Status proceeded = Proceed(); !proceeded.ok()) Fail(proceeded.error());
}

void PipelineProfiler::Fail(Error error) {
  done_ = true;
  trouble_ = std::move(error);
  log::Debug("the pipeline is not profiled: {}", trouble_->message);
}

Status PipelineProfiler::CheckUse(const StageMeter::Reading& reading) const {
  if (reading.instructions.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "no instruction was announced: call OnInstructionBegin() and OnInstructionEnd()"};
  for (const InstructionEstimate& estimate : reading.instructions)
    if (estimate.repetitions == 0 || !(estimate.power > Watts(0)) ||
        !(estimate.power_sigma < kLargestPowerError * estimate.power))
      return Error{
          ErrorCode::kUnavailable,
          fmt::format("after {} iterations at {:.0f} MHz the power of {} cannot be told from "
                      "the rest: use longer iterations",
                      iterations_, sweep_->clock().ToMega(), Quote(estimate.instruction))};
  return Ok();
}

Status PipelineProfiler::Proceed() {
  Status own = Ok();
  if (trouble_) own = *trouble_;
  if (const auto failed = parts_.setter.trouble(); own.ok() && failed) own = *failed;
  const bool warm = all_iterations_ > options_.warm_up;
  if (warm) ++iterations_;
  bool enough = false;
  StageMeter::Reading reading;
  if (own.ok() && warm) {
    reading = meter_.Read();
    enough = sweep_->KnowsEnough(reading.instructions, iterations_);
    if (enough) own = CheckUse(reading);
  }
  ZEUS_RETURN_IF_ERROR(ranks_.Together(std::move(own)));
  std::vector<double> waits_for_more{enough ? 0.0 : 1.0};
  ZEUS_RETURN_IF_ERROR(ranks_.Max(waits_for_more));
  if (waits_for_more[0] == 0.0) return ConcludeClock(std::move(reading));
  if (!warm) meter_.StartOver(0);
  return Ok();
}

Status PipelineProfiler::ConcludeClock(StageMeter::Reading reading) {
  std::vector<double> waiting{0, 0};
  const double variance = std::pow(reading.waiting.sigma.value(), 2);
  if (std::isfinite(variance) && variance > 0)
    waiting = {reading.waiting.power.value() / variance, 1 / variance};
  ZEUS_RETURN_IF_ERROR(ranks_.Sum(waiting));
  AddWaiting(waiting);
  sweep_->Record(std::move(reading.instructions));
  std::vector<double> lower{sweep_->WantsLower(blocking_) ? 1.0 : 0.0};
  ZEUS_RETURN_IF_ERROR(ranks_.Max(lower));
  done_ = lower[0] == 0.0;
  // A rank without a lower clock measures its lowest again; Rows() reports it once.
  if (!done_ && !sweep_->AtLowest()) sweep_->GoLower();
  parts_.setter.Request(done_ ? sweep_->highest() : sweep_->clock());
  meter_.StartOver(options_.rules.settling_instructions);
  iterations_ = 0;
  return Ok();
}

// Waiting takes more power at a higher clock, and the baseline waits at the highest. Lower clocks
// only count while the measurements at higher ones are not precise enough.
void PipelineProfiler::AddWaiting(const std::vector<double>& sums) {
  const Watts sigma(waiting_[1] > 0 ? 1 / std::sqrt(waiting_[1]) : 0);
  if (waiting_[1] > 0 && sigma < kLargestBlockingError * blocking_) return;
  for (std::size_t i = 0; i < sums.size(); ++i) waiting_[i] += sums[i];
  if (waiting_[1] > 0) blocking_ = std::max(Watts(waiting_[0] / waiting_[1]), Watts(0));
}

std::string PipelineProfiler::Rows() const {
  const PipelineRank& rank = options_.rank;
  std::string rows;
  std::optional<Hertz> last;
  for (const auto& [clock, estimates] : sweep_->measured()) {
    if (std::exchange(last, clock) == clock) continue;
    for (const InstructionEstimate& estimate : estimates)
      rows += fmt::format("{},{},{},{},{},{},{},{},{}\n", parts_.collective.rank(), rank.dp_rank,
                          rank.pp_rank, rank.tp_rank, rank.pp_rank, estimate.instruction,
                          clock.ToMega(), estimate.time.count(), estimate.energy().value());
  }
  return rows;
}

Result<pipeline::PipelineProfile> PipelineProfiler::Gather() {
  if (trouble_) return *trouble_;
  ZEUS_TRY(const std::vector<std::string> rows, ranks_.Gather(Rows()));
  std::string text = kHeader;
  for (const std::string& part : rows) text += part;
  ZEUS_TRY(pipeline::PipelineProfile profile, pipeline::ParseProfileCsv(text));
  profile.blocking_power = blocking_ * options_.rank.tp_degree;
  pipeline::DropDominated(profile);
  ZEUS_RETURN_IF_ERROR(pipeline::Check(profile));
  return profile;
}

}  // namespace zeus
