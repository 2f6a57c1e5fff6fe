#include "apps/zeus/calibrate/recording.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;
using calibration::LoadState;

// This is not a divisor of usual update periods, so polls hit updates at all phases.
constexpr Seconds kPollInterval = 930us;

constexpr double kSlowStretches = 6;
constexpr Seconds kShortestPlateau = 500ms;
constexpr Seconds kLongestPlateau = 2500ms;

template <class Read>
void Poll(Clock& clock, RecordedSensor& sensor, Read read) {
  if (sensor.error && !sensor.error->retryable()) return;
  const auto value = read();
  if (value.ok()) {
    sensor.trace.Add(clock.Now(), value.value().value());
  } else if (!sensor.error) {
    sensor.error = value.error();
  }
}

void PollAll(Clock& clock, std::vector<RecordedGpu>& gpus) {
  for (RecordedGpu& entry : gpus) {
    Gpu& gpu = *entry.gpu;
    Poll(clock, entry.instant_power, [&] { return gpu.Power(PowerKind::kInstant); });
    Poll(clock, entry.average_power, [&] { return gpu.Power(PowerKind::kOneSecondAverage); });
    Poll(clock, entry.counter, [&] { return gpu.TotalEnergy(); });
  }
}

Status SwitchAll(Clock& clock, std::vector<RecordedGpu>& gpus, LoadState state) {
  for (RecordedGpu& entry : gpus) {
    const TimePoint before = clock.Now();
    ZEUS_RETURN_IF_ERROR(entry.switched_load->Switch(state));
    entry.load.Add(before + (clock.Now() - before) / 2, state);
  }
  return Ok();
}

}  // namespace

std::vector<Seconds> MakeSchedule(const LoadSchedule& schedule) {
  if (!schedule.for_meter) return calibration::SquareWave(schedule.period, schedule.duration);
  const Seconds half = schedule.duration / 2;
  std::vector<Seconds> lengths = calibration::SquareWave(schedule.period, half);
  // Idle and busy in turn: the slow part goes on with the state that follows the fast part.
  const Seconds plateau = std::clamp(half / kSlowStretches, kShortestPlateau, kLongestPlateau);
  for (Seconds total(0); total < half; total += plateau)
    lengths.push_back(std::min(plateau, half - total));
  return lengths;
}

Result<RecordingEnd> Record(Clock& clock, std::vector<RecordedGpu>& gpus,
                            const std::vector<Seconds>& schedule, SignalWatch& signals) {
  TimePoint next = clock.Now();
  LoadState state = LoadState::kIdle;
  for (const Seconds length : schedule) {
    ZEUS_RETURN_IF_ERROR(SwitchAll(clock, gpus, state));
    next += length;
    while (clock.Now() < next) {
      if (signals.stop_signal() != 0)
        return Error{ErrorCode::kUnavailable, "interrupted: nothing was stored"};
      const TimePoint poll = clock.Now();
      PollAll(clock, gpus);
      clock.SleepUntil(std::min(next, poll + kPollInterval));
    }
    state = state == LoadState::kIdle ? LoadState::kBusy : LoadState::kIdle;
  }
  const RecordingEnd end{clock.Now(), {clock.Now(), clock.WallNow()}};
  ZEUS_RETURN_IF_ERROR(SwitchAll(clock, gpus, LoadState::kIdle));
  return end;
}

}  // namespace zeus::cli
