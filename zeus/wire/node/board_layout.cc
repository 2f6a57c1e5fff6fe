#include "zeus/wire/node/board_layout.h"

#include <bit>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

namespace zeus::wire::board {
namespace {

// The state of a value, in four bits: not asked for, known, or the code of its error.
constexpr std::uint64_t kNotAsked = 0;
constexpr std::uint64_t kKnown = 1;
constexpr std::uint64_t kFirstError = 2;
constexpr std::uint64_t kLastCode = static_cast<std::uint64_t>(ErrorCode::kInternal);
constexpr unsigned kStateBits = 4;

std::uint64_t ToWord(double value) { return std::bit_cast<std::uint64_t>(value); }
double ToDouble(std::uint64_t word) { return std::bit_cast<double>(word); }

std::uint64_t ToWord(TimePoint time) { return ToWord(time.time_since_epoch().count()); }
TimePoint ToTime(std::uint64_t word) { return TimePoint(Seconds(ToDouble(word))); }

// Positions of words. Those of energy are the same in both kinds of record.
enum UpdateWord : std::size_t {
  kNumber,
  kTime,
  kEnergy,
  kEpoch,
  kPower,
  kStates,
  kTakenAt,
  kTelemetryNumber
};

enum TelemetryWord : std::size_t {
  kInstantPower = kPower,
  kAveragePower = kTelemetryNumber,
  kMemoryPower,
  kRequestedLimit,
  kEnforcedLimit,
  kTemperature,
  kCompute,
  kMemoryTraffic,
  kUsedBytes,
  kTotalBytes,
  kGraphicsClock,
  kMemoryClock,
  kThrottle
};

// Positions of states in their word.
enum Field : unsigned {
  kEnergyField,
  kPowerField,
  kInstantField = kPowerField,
  kTakenAtField,
  kAverageField,
  kMemoryPowerField,
  kRequestedField,
  kEnforcedField,
  kTemperatureField,
  kUtilizationField,
  kMemoryField,
  kGraphicsClockField,
  kMemoryClockField,
  kThrottleField
};

template <class T>
std::uint64_t StateOf(const Result<T>& value) {
  return value.ok() ? kKnown : kFirstError + static_cast<std::uint64_t>(value.error().code);
}
constexpr std::uint64_t Shifted(std::uint64_t state, Field field) {
  return state << (kStateBits * field);
}
std::uint64_t StateIn(std::uint64_t states, Field field) {
  return states >> (kStateBits * field) & 15U;
}

Error ErrorOf(std::uint64_t state) {
  if (state < kFirstError || state - kFirstError > kLastCode)
    return {ErrorCode::kUnavailable, "the node daemon did not read this value"};
  const auto code = static_cast<ErrorCode>(state - kFirstError);
  return {code, code == ErrorCode::kNotSupported ? "this device does not tell it"
                                                 : "the node daemon could not read this value"};
}

// Puts values into the words of a record.
template <class Words>
class Encoder {
 public:
  explicit Encoder(Words& words) : words_(words) {}

  template <class T>
  void Put(Field field, std::size_t word, const Result<T>& value) {
    words_[kStates] |= Shifted(StateOf(value), field);
    if (value.ok()) words_[word] = ToWord(value.value().value());
  }
  void Put(const Result<EnergyReading>& energy) {
    words_[kStates] |= Shifted(StateOf(energy), kEnergyField);
    if (!energy.ok()) return;
    words_[kEnergy] = ToWord(energy.value().total.value());
    words_[kEpoch] = energy.value().epoch;
    if (!energy.value().taken_at) return;
    words_[kStates] |= Shifted(kKnown, kTakenAtField);
    words_[kTakenAt] =
        static_cast<std::uint64_t>(energy.value().taken_at->time_since_epoch().count());
  }
  // For values of several words: whether they are to be put.
  template <class T>
  bool PutState(Field field, const Result<T>& value) {
    words_[kStates] |= Shifted(StateOf(value), field);
    return value.ok();
  }

 private:
  Words& words_;
};

template <class Words>
class Decoder {
 public:
  explicit Decoder(const Words& words) : words_(words) {}

  std::uint64_t State(Field field) const { return StateIn(words_[kStates], field); }
  template <class T>
  Result<T> Take(Field field, std::size_t word) const {
    if (State(field) != kKnown) return ErrorOf(State(field));
    return T(ToDouble(words_[word]));
  }
  Result<EnergyReading> TakeEnergy() const {
    if (State(kEnergyField) != kKnown) return ErrorOf(State(kEnergyField));
    EnergyReading reading{.total = Joules(ToDouble(words_[kEnergy])),
                          .epoch = words_[kEpoch],
                          .taken_at = std::nullopt};
    if (State(kTakenAtField) == kKnown)
      reading.taken_at =
          WallTime(std::chrono::microseconds(static_cast<std::int64_t>(words_[kTakenAt])));
    return reading;
  }

 private:
  const Words& words_;
};

// Bits of throttle reasons.
std::uint64_t ToWord(const ThrottleReasons& reasons) {
  return (reasons.idle ? 1U : 0U) | (reasons.power_cap ? 2U : 0U) | (reasons.thermal ? 4U : 0U) |
         (reasons.locked_clock ? 8U : 0U) | (reasons.other ? 16U : 0U);
}
ThrottleReasons ToReasons(std::uint64_t word) {
  return {.idle = (word & 1U) != 0,
          .power_cap = (word & 2U) != 0,
          .thermal = (word & 4U) != 0,
          .locked_clock = (word & 8U) != 0,
          .other = (word & 16U) != 0};
}

}  // namespace

Update::Words Encode(std::uint64_t number, TimePoint time, const DeviceReading& reading,
                     std::uint64_t telemetry) {
  Update::Words words{};
  words[kNumber] = number;
  words[kTime] = ToWord(time);
  words[kTelemetryNumber] = telemetry;
  Encoder encoder(words);
  if (reading.energy) encoder.Put(*reading.energy);
  if (reading.power) encoder.Put(kPowerField, kPower, *reading.power);
  return words;
}

Telemetry::Words Encode(std::uint64_t number, TimePoint time, const GpuReading& reading) {
  Telemetry::Words words{};
  words[kNumber] = number;
  words[kTime] = ToWord(time);
  Encoder encoder(words);
  encoder.Put(reading.energy);
  encoder.Put(kInstantField, kInstantPower, reading.instant_power);
  encoder.Put(kAverageField, kAveragePower, reading.average_power);
  encoder.Put(kMemoryPowerField, kMemoryPower, reading.memory_power);
  encoder.Put(kRequestedField, kRequestedLimit, reading.requested_limit);
  encoder.Put(kEnforcedField, kEnforcedLimit, reading.enforced_limit);
  encoder.Put(kTemperatureField, kTemperature, reading.temperature);
  encoder.Put(kGraphicsClockField, kGraphicsClock, reading.graphics_clock);
  encoder.Put(kMemoryClockField, kMemoryClock, reading.memory_clock);
  if (encoder.PutState(kUtilizationField, reading.utilization)) {
    words[kCompute] = ToWord(reading.utilization.value().compute);
    words[kMemoryTraffic] = ToWord(reading.utilization.value().memory);
  }
  if (encoder.PutState(kMemoryField, reading.memory)) {
    words[kUsedBytes] = reading.memory.value().used_bytes;
    words[kTotalBytes] = reading.memory.value().total_bytes;
  }
  if (encoder.PutState(kThrottleField, reading.throttle))
    words[kThrottle] = ToWord(reading.throttle.value());
  return words;
}

DecodedUpdate Decode(const Update::Words& words) {
  DecodedUpdate update{
      .time = ToTime(words[kTime]), .reading = {}, .telemetry = words[kTelemetryNumber]};
  const Decoder decoder(words);
  if (decoder.State(kEnergyField) != kNotAsked) update.reading.energy = decoder.TakeEnergy();
  if (decoder.State(kPowerField) != kNotAsked)
    update.reading.power = decoder.template Take<Watts>(kPowerField, kPower);
  return update;
}

DecodedTelemetry Decode(const Telemetry::Words& words) {
  const Decoder decoder(words);
  const auto known = [&](Field field) { return decoder.State(field) == kKnown; };
  const auto error = [&](Field field) { return ErrorOf(decoder.State(field)); };
  Result<Utilization> utilization = error(kUtilizationField);
  if (known(kUtilizationField))
    utilization = Utilization{.compute = ToDouble(words[kCompute]),
                              .memory = ToDouble(words[kMemoryTraffic])};
  Result<MemoryUse> memory = error(kMemoryField);
  if (known(kMemoryField))
    memory = MemoryUse{.used_bytes = words[kUsedBytes], .total_bytes = words[kTotalBytes]};
  Result<ThrottleReasons> throttle = error(kThrottleField);
  if (known(kThrottleField)) throttle = ToReasons(words[kThrottle]);
  return {.time = ToTime(words[kTime]),
          .reading = {
              .energy = decoder.TakeEnergy(),
              .instant_power = decoder.template Take<Watts>(kInstantField, kInstantPower),
              .average_power = decoder.template Take<Watts>(kAverageField, kAveragePower),
              .memory_power = decoder.template Take<Watts>(kMemoryPowerField, kMemoryPower),
              .requested_limit = decoder.template Take<Watts>(kRequestedField, kRequestedLimit),
              .enforced_limit = decoder.template Take<Watts>(kEnforcedField, kEnforcedLimit),
              .temperature = decoder.template Take<Celsius>(kTemperatureField, kTemperature),
              .utilization = std::move(utilization),
              .memory = std::move(memory),
              .graphics_clock = decoder.template Take<Hertz>(kGraphicsClockField, kGraphicsClock),
              .memory_clock = decoder.template Take<Hertz>(kMemoryClockField, kMemoryClock),
              .throttle = std::move(throttle)}};
}

}  // namespace zeus::wire::board
