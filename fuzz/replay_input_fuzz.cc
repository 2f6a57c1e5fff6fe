#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/input/text_source.h"

// Reads traces from foreign sources: plain text, or compressed and possibly damaged. Jobs that are
// read from them must satisfy the promises of ClusterTrace.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto bytes = zeus::replay::ReadFromMemory(text);
  if (const std::optional packing = zeus::replay::DetectPacking(text)) {
    auto unpacked = zeus::replay::Unpack(*packing, "fuzz", std::move(bytes));
    if (!unpacked.ok()) return 0;
    bytes = std::move(unpacked).value();
  }
  zeus::replay::RowProblems problems;
  const auto trace =
      zeus::replay::ReadGroupTrace(zeus::replay::TextSource("fuzz", std::move(bytes)), problems);
  if (!trace.ok()) return 0;
  for (const auto& group : trace.value().groups)
    for (const auto& job : trace.value().GroupJobs(group))
      if (!(job.end >= job.start) || !(job.runtime_ratio >= 0)) __builtin_trap();
  return 0;
}
