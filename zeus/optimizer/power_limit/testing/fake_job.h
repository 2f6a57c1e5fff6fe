#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"
#include "zeus/optimizer/power_limit/slice_meter.h"

namespace zeus::testing {

// A power limit that is a number in memory.
class FakeKnob final : public Knob {
 public:
  FakeKnob(PowerRange range, Watts present) : range_(range), present_(present), before_(present) {}

  const std::string& name() const override { return name_; }
  KnobKind kind() const override { return KnobKind::kGpuPowerLimit; }
  Result<std::vector<Setting>> Settings(const Setting& stride) override {
    std::vector<Setting> settings;
    for (Watts limit = range_.max; limit > range_.min; limit -= std::get<Watts>(stride))
      settings.emplace_back(limit);
    settings.emplace_back(range_.min);
    return settings;
  }
  Result<Setting> Current() override { return Setting(present_); }
  Watts max_power() const override { return range_.max; }
  Status Set(const Setting& setting) override {
    if (refusal) return *refusal;
    if (std::get<Watts>(setting) > ceiling)
      return Error{ErrorCode::kConflict, "the power limit is not raised above the ceiling"};
    present_ = std::get<Watts>(setting);
    history.push_back(present_);
    return Ok();
  }
  Status CheckInForce(const Setting& setting) override {
    if (Setting(std::min(present_, cap)) == setting) return Ok();
    return Error{ErrorCode::kUnavailable, "a cap from outside holds"};
  }
  Status Restore() override {
    present_ = before_;
    return Ok();
  }

  Watts present() const { return present_; }

  std::optional<Error> refusal;
  std::vector<Watts> history;
  Watts cap{1e9};      // From outside: a higher limit is not obeyed.
  Watts ceiling{1e9};  // From outside: a higher limit is refused.

 private:
  const std::string name_ = "power limit of gpu:0";
  const PowerRange range_;
  Watts present_;
  const Watts before_;
};

// The time and energy of a step at a limit.
struct FakeStep {
  Seconds time;
  Joules energy;
};

// A meter that knows exactly what was used. A reading is final `final_after` the end of its slice.
class FakeMeter final : public SliceMeter {
 public:
  explicit FakeMeter(Clock& clock) : clock_(clock) {}

  Status Begin(const std::string& label) override {
    if (failure) return *failure;
    labels.push_back(label);
    begin_ = clock_.Now();
    energy_begin_ = used;
    return Ok();
  }
  Result<SliceReading> Peek() override { return SoFar(); }
  Result<Ticket> End() override {
    slices_.push_back({SoFar(), clock_.Now()});
    begin_.reset();
    return Ticket(slices_.size() - 1);
  }
  void Cancel() override { begin_.reset(); }
  Result<SliceReading> Read(Ticket ticket) override {
    const auto& [reading, end] = slices_[static_cast<std::size_t>(ticket)];
    SliceReading told = reading;
    told.final = clock_.Now() >= end + final_after;
    if (!told.final) told.energy = told.energy * 3;  // No caller may rely on it.
    return told;
  }

  bool measuring() const { return begin_.has_value(); }

  Joules used{0};
  Seconds final_after{0};
  double relative_sigma = 0;
  std::optional<Error> failure;
  std::vector<std::string> labels;

 private:
  SliceReading SoFar() const {
    const Joules energy = used - energy_begin_;
    return {.time = clock_.Now() - *begin_, .energy = energy, .sigma = energy * relative_sigma};
  }

  Clock& clock_;
  std::optional<TimePoint> begin_;
  Joules energy_begin_{0};
  std::vector<std::pair<SliceReading, TimePoint>> slices_;
};

// A job whose steps take what a table says, on a GPU whose limit is a FakeKnob.
class FakeJob {
 public:
  using Table = std::function<FakeStep(Watts limit)>;

  explicit FakeJob(Table table, PowerRange range = {Watts(100), Watts(300)},
                   Watts present = Watts(300))
      : knob(range, present), meter(clock), table_(std::move(table)) {}

  void Step(PowerLimitOptimizer& optimizer) {
    optimizer.OnStepBegin();
    const FakeStep step = table_(knob.present());
    clock.Advance(step.time);
    meter.used += step.energy;
    optimizer.OnStepEnd();
    ++steps;
  }
  void Epoch(PowerLimitOptimizer& optimizer, int length) {
    optimizer.OnEpochBegin();
    for (int i = 0; i < length; ++i) Step(optimizer);
    optimizer.OnEpochEnd();
    Evaluate();
  }
  // Takes time and energy that must not be counted.
  void Evaluate() {
    clock.Advance(Seconds(1.7));
    meter.used += Joules(900);
  }
  // Epochs of `length` until it is done; how many.
  int Train(PowerLimitOptimizer& optimizer, int length, int at_most = 100'000) {
    int epochs = 0;
    for (; !optimizer.done() && epochs < at_most; ++epochs) Epoch(optimizer, length);
    return epochs;
  }

  PowerLimitOptimizer::Parts parts() { return {clock, knob, meter, collective}; }

  VirtualClock clock;
  FakeKnob knob;
  FakeMeter meter;
  SingleProcess collective;
  int steps = 0;

 private:
  const Table table_;
};

// Slower and, down to some limit, thriftier the lower the limit is.
inline FakeStep TypicalStep(Watts limit) {
  const Seconds time(0.1 * (1 + 20 / limit.value()));
  return {.time = time, .energy = (limit * 0.9 + Watts(20)) * time};
}

}  // namespace zeus::testing
