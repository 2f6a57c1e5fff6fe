#include "zeus/device/sim/inference/physics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace zeus::sim {
namespace {

using namespace zeus::literals;

// Below this share of the highest clock the memory system cannot keep up.
constexpr double kMemoryKnee = 0.45;

// The parts of dynamic energy that do not depend on voltage and clock.
constexpr double kMemoryFloor = 0.5;
constexpr double kArithmeticFloor = 0.25;
constexpr double kSequenceFloor = 0.5;

// H100 SXM with vLLM 0.11, fitted to the ML.ENERGY Leaderboard v3.
constexpr InferenceConstants kH100{.memory_efficiency = 0.82,
                                   .arithmetic_efficiency = 0.62,
                                   .per_sequence = Seconds(47.6e-6),
                                   .per_exchange = Seconds(0.15e-6),
                                   .per_routed = Seconds(0.37e-6),
                                   .static_power = 90_W,
                                   .per_byte = Joules(154e-12),
                                   .per_operation = Joules(1.53e-12),
                                   .per_sequence_energy = Joules(0.0233),
                                   .per_routed_energy = Joules(450e-6),
                                   .small_kernels = 100_W};
constexpr Watts kH100Range = 630_W;  // Default limit less idle power.
constexpr Watts kH100Idle = 70_W;
constexpr double kH100Bandwidth = 3350e9;
constexpr double kH100Peak = 989e12;

// Kernels for weights that are scaled per block work on tiles of so many rows, and each expert of a
// GPU has one, however few tokens go to it. They multiply in 8 bits: twice as fast as in 16, and at
// half the energy.
constexpr double kRowsOfTile = 128.0;
constexpr double kCostOfEightBits = 0.5;

// f V^2 relative to the highest clock; the voltage falls with the clock as in PowerShareAt(), whose
// static part is taken away here.
double VoltageShare(const GpuModel& model, Hertz clock) {
  const double still = PowerShareAt(model, Hertz(0));
  return (PowerShareAt(model, clock) - still) / (1.0 - still);
}

double MemorySpeed(double relative_clock) { return std::min(1.0, relative_clock / kMemoryKnee); }

bool IsQuantity(double value) { return value >= 0.0 && std::isfinite(value); }

Status CheckIterationWork(const IterationWork& work) {
  if (IsQuantity(work.bytes) && IsQuantity(work.operations) && IsQuantity(work.sequences) &&
      IsQuantity(work.exchanged) && IsQuantity(work.routed) && IsQuantity(work.overhead.count()) &&
      IsQuantity(work.small_kernels.count()) && work.gpus >= 1.0 &&
      work.bytes + work.operations > 0.0)
    return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("an iteration must have bytes or operations, not {:g} bytes and {:g} "
                           "operations",
                           work.bytes, work.operations)};
}

// The highest supported clock up to `cap` at which `fits`; the lowest if there is none. Power rises
// with the clock, so a bisection finds it.
template <class Fits>
Hertz ClockWithin(const GpuModel& model, Hertz cap, const Fits& fits) {
  if (fits(cap)) return cap;
  const auto at = [&](int steps) {
    return SupportedClockBelow(model, cap - model.graphics_clock_step * steps);
  };
  int low = 1;
  int high = static_cast<int>((cap - model.graphics_clock.min) / model.graphics_clock_step) + 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (fits(at(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return at(low);
}

}  // namespace

InferenceConstants ConstantsFor(const GpuModel& model) {
  // Another part spends the same shares of its power range on its memory, its arithmetic and its
  // bookkeeping at the speeds of its data sheet. The times of the engine are the host's and stay.
  const Watts range = model.default_limit - model.idle_power;
  const double power = range / kH100Range;
  InferenceConstants constants = kH100;
  constants.static_power = kH100.static_power * (model.idle_power / kH100Idle);
  constants.per_byte = kH100.per_byte * (power * kH100Bandwidth / model.memory_bandwidth);
  constants.per_operation = kH100.per_operation * (power * kH100Peak / model.peak_operations);
  constants.per_sequence_energy = kH100.per_sequence_energy * power;
  constants.per_routed_energy = kH100.per_routed_energy * power;
  constants.small_kernels = kH100.small_kernels * power;
  return constants;
}

IterationLaw::IterationLaw(const GpuModel& model, const InferenceConstants& constants,
                           Hertz clock) {
  const double relative = clock / model.graphics_clock.max;
  const double dynamic = VoltageShare(model, clock);
  const auto share = [dynamic](double floor) { return floor + (1.0 - floor) * dynamic; };
  static_power_ = constants.static_power;
  time_per_byte_ =
      Seconds(1.0 / (constants.memory_efficiency * model.memory_bandwidth * MemorySpeed(relative)));
  time_per_operation_ =
      Seconds(1.0 / (constants.arithmetic_efficiency * model.peak_operations * relative));
  time_per_sequence_ = constants.per_sequence;
  time_per_exchange_ = constants.per_exchange;
  time_per_routed_ = constants.per_routed;
  energy_per_byte_ = constants.per_byte * share(kMemoryFloor);
  energy_per_operation_ = constants.per_operation * share(kArithmeticFloor);
  energy_per_sequence_ = constants.per_sequence_energy * share(kSequenceFloor);
  energy_per_routed_ = constants.per_routed_energy * share(kMemoryFloor);
  small_kernels_ = constants.small_kernels * share(kSequenceFloor);
}

IterationCost IterationLaw::Cost(const IterationWork& work) const {
  const Seconds time = time_per_byte_ * work.bytes + time_per_operation_ * work.operations +
                       time_per_sequence_ * work.sequences + time_per_exchange_ * work.exchanged +
                       time_per_routed_ * work.routed + work.overhead + work.small_kernels;
  return {.time = time,
          .energy = static_power_ * time + energy_per_byte_ * work.bytes +
                    energy_per_operation_ * work.operations +
                    energy_per_sequence_ * (work.sequences / work.gpus) +
                    energy_per_routed_ * work.routed + small_kernels_ * work.small_kernels};
}

Result<OperatingPoint> PredictIteration(const GpuModel& model, const IterationWork& work,
                                        const KnobSettings& knobs) {
  return PredictIteration(model, ConstantsFor(model), work, knobs);
}

Result<OperatingPoint> PredictIteration(const GpuModel& model, const InferenceConstants& constants,
                                        const IterationWork& work, const KnobSettings& knobs) {
  ZEUS_RETURN_IF_ERROR(CheckIterationWork(work));
  ZEUS_RETURN_IF_ERROR(CheckKnobs(model, knobs));
  const Hertz cap = SupportedClockBelow(
      model,
      std::min(knobs.clock_cap.value_or(model.graphics_clock.max), model.graphics_clock.max));
  const Hertz clock = ClockWithin(model, cap, [&](Hertz candidate) {
    return IterationLaw(model, constants, candidate).Cost(work).power() <= knobs.power_limit;
  });
  const IterationLaw law(model, constants, clock);
  IterationCost cost = law.Cost(work);
  if (cost.power() > knobs.power_limit) {
    // Left-out pulses: the same dynamic energy takes longer.
    const Joules dynamic = cost.energy - law.static_power() * cost.time;
    cost.time = dynamic / (knobs.power_limit - law.static_power());
    cost.energy = knobs.power_limit * cost.time;
  }
  return OperatingPoint{.time_per_epoch = cost.time,
                        .average_power = cost.power(),
                        .graphics_clock = clock,
                        .utilization = 1.0};
}

double IterationParts::Exchanged(double tokens) const {
  return gpus_ > 1 ? model_.layers * tokens : 0.0;
}

// Experts are spread evenly, so this part of the tokens goes to other GPUs.
double IterationParts::Routed(double tokens) const {
  return model_.mixture_layers() * tokens * (1.0 - 1.0 / gpus_);
}

IterationWork IterationParts::Fixed() const {
  const Seconds each = overheads_.each + (gpus_ > 1 ? overheads_.in_group : Seconds(0));
  Seconds of_mixture{};
  if (model_.mixture())
    of_mixture = overheads_.sort_tokens + overheads_.per_doubling * std::log2(gpus_);
  if (model_.has_shared_expert()) of_mixture += overheads_.shared_expert;
  const double tiles = model_.block_scaled() ? kRowsOfTile * kCostOfEightBits : 0.0;
  return {.bytes = model_.shared_weight_bytes() / gpus_,
          .operations = 2.0 * tiles * model_.expert_parameters() / gpus_,
          .overhead = each * model_.layers,
          .small_kernels = of_mixture * model_.mixture_layers() +
                           (model_.packed() ? overheads_.packed * model_.layers : Seconds(0)),
          .gpus = gpus_};
}

IterationWork IterationParts::Experts(double tokens) const {
  const double bytes = model_.WeightBytesRead(tokens) - model_.shared_weight_bytes();
  return {.bytes = bytes / gpus_, .gpus = gpus_};
}

IterationWork IterationParts::Decode(double sequences, double context) const {
  const double attention = 4.0 * model_.layers * model_.attention_width() * context;
  return {.bytes = model_.kv_bytes() * context / gpus_,
          .operations = (2.0 * model_.active_parameters * sequences + attention) / gpus_,
          .sequences = sequences,
          .exchanged = Exchanged(sequences),
          .routed = Routed(sequences),
          .gpus = gpus_};
}

IterationWork IterationParts::Prompt(const PromptPart& part) const {
  // Token j of the prompt looks at j tokens; each key and value is read or written once.
  const double whole = part.start + part.tokens;
  const double looked_at = SeenFromStart(whole) - SeenFromStart(part.start);
  const double attention = 4.0 * model_.layers * model_.attention_width() * looked_at;
  return {.bytes = model_.kv_bytes() * (model_.SeenContext(part.start) + part.tokens) / gpus_,
          .operations = (2.0 * model_.active_parameters * part.tokens + attention) / gpus_,
          .exchanged = Exchanged(part.tokens),
          .routed = Routed(part.tokens),
          .gpus = gpus_};
}

// The sum of SeenContext() over the first `tokens` tokens.
double IterationParts::SeenFromStart(double tokens) const {
  const double windowed = static_cast<double>(model_.windowed_layers) / model_.layers;
  const double beyond = std::max(tokens - model_.window, 0.0);
  return 0.5 * (tokens * (tokens + 1.0) - windowed * beyond * (beyond + 1.0));
}

}  // namespace zeus::sim
