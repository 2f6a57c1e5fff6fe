#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/monitor/energy_monitor.h"
#include "zeus/optimizer/pipeline/clock_sweep.h"

namespace zeus {

// Measures the instructions of a stage while its clock stays the same: their times from the calls
// at their begin and end, their powers from the updates of the devices' sensors
// (pipeline::PowerAttribution). The time between instructions is waiting. One owner; the monitor
// must outlive it and must be recording.
class StageMeter {
 public:
  // `devices` holds positions in the monitor.
  StageMeter(EnergyMonitor& monitor, std::vector<std::size_t> devices);

  // Drops all measurements because the clock changes; the next `instructions` are not counted.
  void StartOver(int instructions);

  void Begin(std::string_view instruction);
  // Ignored without a Begin() of the same name before it.
  void End(std::string_view instruction);

  struct Reading {
    std::vector<pipeline::InstructionEstimate> instructions{};  // In order of first occurrence.
    pipeline::WaitingEstimate waiting{};
  };
  Reading Read() const;

 private:
  struct Span {
    std::size_t kind;
    TimePoint begin;
    TimePoint end;
  };

  std::size_t KindIndex(std::string_view instruction);
  // Returns the time of each kind of instruction between `begin` and `end`, then that of waiting.
  // `first` is the first span that may overlap, and is moved on for the next call.
  std::vector<Seconds> Exposure(TimePoint begin, TimePoint end, std::size_t& first) const;
  void AddPowers(std::size_t device, Reading& reading) const;

  EnergyMonitor& monitor_;
  const std::vector<std::size_t> devices_;
  std::vector<std::string> kinds_;
  std::vector<Span> spans_;
  std::optional<Span> open_;
  TimePoint from_;
  int skipped_ = 0;  // Number of further instructions that are not counted.
};

}  // namespace zeus
