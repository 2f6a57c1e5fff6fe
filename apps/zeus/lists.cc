#include "apps/zeus/lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

Error NoSuchGpu(const Node& node, const std::string& name) {
  const auto lost = std::ranges::find(node.absent, name, &Absence::what);
  if (lost != node.absent.end())
    return {ErrorCode::kNotFound, fmt::format("{}: {}", name, lost->reason)};
  if (node.gpus.empty())
    return {ErrorCode::kNotFound, fmt::format("no {} here: zeus doctor says why", name)};
  return {ErrorCode::kNotFound, fmt::format("no {} here: this process sees {} to {}", name,
                                            node.gpus.front()->name(), node.gpus.back()->name())};
}

}  // namespace

Result<std::vector<unsigned>> ParseGpus(const std::string& text) {
  constexpr std::string_view kPrefix = "gpu:";
  constexpr std::uint64_t kMost = 1 << 16;
  std::vector<unsigned> gpus;
  for (std::string_view part : SplitAtCommas(text)) {
    if (part.starts_with(kPrefix)) part.remove_prefix(kPrefix.size());
    const auto number = ParseUnsigned(part);
    if (!number.ok() || number.value() > kMost) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--gpus takes numbers as in 0,1, not {}", Quote(text))};
    }
    const auto gpu = static_cast<unsigned>(number.value());
    if (std::ranges::find(gpus, gpu) == gpus.end()) gpus.push_back(gpu);
  }
  return gpus;
}

Status CheckGpus(const Node& node, const std::vector<unsigned>& numbers) {
  for (const unsigned number : numbers) {
    const std::string name = fmt::format("gpu:{}", number);
    const bool present =
        std::ranges::any_of(node.gpus, [&](const auto& gpu) { return gpu->name() == name; });
    if (!present) return NoSuchGpu(node, name);
  }
  return Ok();
}

}  // namespace zeus::cli
