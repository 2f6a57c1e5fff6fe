#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/units.h"
#include "zeus/recording/recording_file.h"

namespace zeus::recording {

struct GpuSummary {
  std::uint32_t number;
  std::string name{};
  std::string uuid{};
  std::optional<Joules> energy{};  // From the first to the last reading of its counter.
};

struct FunctionSummary {
  std::uint16_t function;
  std::uint64_t calls = 0;
  std::map<std::int32_t, std::uint64_t> failures{};  // By the driver's code.
  Seconds median{};
  Seconds longest{};
};

// The content of a recording, for people.
struct Summary {
  Seconds duration{};
  std::vector<GpuSummary> gpus;
  std::vector<FunctionSummary> functions;  // The most called first.
  std::uint64_t calls = 0;
  std::uint64_t lost = 0;
  std::uint64_t left_out = 0;  // Calls whose answer was too intricate to be kept.
  std::string driver;          // Its version, where the program asked for it.
};

Summary Summarise(const Recording& recording);
std::string ToText(const Recording& recording, const Summary& summary);
Json ToJson(const Recording& recording, const Summary& summary);

}  // namespace zeus::recording
