#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/monitor/energy_monitor.h"
#include "zeus/optimizer/pipeline/clock_sweep.h"

namespace zeus {

// Measures the instructions of a stage while its clock stays the same: their times by the calls at
// their begin and end, their powers by what the sensors of its devices showed from update to update
// (pipeline::PowerAttribution). What lies between instructions is waiting. One owner; the monitor
// must outlive it, and somebody must call its Step().
class StageMeter {
 public:
  // `devices` are positions in the monitor.
  StageMeter(EnergyMonitor& monitor, std::vector<std::size_t> devices);

  // Forgets everything: the clock changes. The next `instructions` are not counted.
  void StartOver(int instructions);

  void Begin(std::string_view instruction);
  // Without a Begin() of the same name before it, it is ignored.
  void End(std::string_view instruction);

  struct Reading {
    std::vector<pipeline::InstructionEstimate> instructions{};  // In the order they came first.
    pipeline::WaitingEstimate waiting{};
  };
  Reading Read() const;

 private:
  struct Span {
    std::size_t kind;
    TimePoint begin;
    TimePoint end;
  };

  std::size_t KindOf(std::string_view instruction);
  // Of each kind, then of waiting.
  std::vector<Seconds> Exposure(TimePoint begin, TimePoint end, std::size_t& first) const;
  void AddPowers(std::size_t device, Reading& reading) const;

  EnergyMonitor& monitor_;
  const std::vector<std::size_t> devices_;
  std::vector<std::string> kinds_;
  std::vector<Span> spans_;
  std::optional<Span> open_;
  TimePoint from_;
  int skipped_ = 0;  // Instructions that still are not counted.
};

}  // namespace zeus
