#include "zeus/device/sim/node_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "zeus/base/text.h"

namespace zeus::sim {
namespace {

constexpr std::size_t kMaxNameLength = 64;

Error BadList(std::string_view text, std::string_view part, std::string_view reason) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("bad GPU list {}: {}: {}; write it like 4xV100,2xA100", Quote(text),
                      Quote(part), reason)};
}

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

struct Group {
  std::string_view count = "1";
  std::string_view model;
};

// "4xV100" or "V100": the count is what stands before the first 'x' if it is made of digits.
Group SplitGroup(std::string_view part) {
  const auto cross = part.find_first_of("xX");
  if (cross == std::string_view::npos) return {.model = part};
  const std::string_view count = part.substr(0, cross);
  const bool digits = std::all_of(count.begin(), count.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  // "RTX6000" has an x too, but no number before it.
  if (!digits) return {.model = part};
  return {.count = count, .model = part.substr(cross + 1)};
}

}  // namespace

Result<std::vector<const GpuModel*>> ParseGpuList(std::string_view text) {
  std::vector<const GpuModel*> gpus;
  std::string_view rest = text;
  while (true) {
    const auto comma = rest.find(',');
    const std::string_view part = Trim(rest.substr(0, comma));
    const Group group = SplitGroup(part);
    const auto count = ParseUnsigned(group.count);
    if (!count.ok() || count.value() == 0)
      return BadList(text, part, "the count is not a positive number");
    auto model = FindGpuModel(group.model);
    if (!model.ok()) return BadList(text, part, model.error().message);
    if (count.value() > kMaxGpusPerNode - gpus.size()) {
      return BadList(text, part, fmt::format("a node holds at most {} GPUs", kMaxGpusPerNode));
    }
    gpus.insert(gpus.end(), count.value(), model.value());
    if (comma == std::string_view::npos) return gpus;
    rest.remove_prefix(comma + 1);
  }
}

std::string FormatGpuList(const std::vector<const GpuModel*>& gpus) {
  std::string text;
  for (auto first = gpus.begin(); first != gpus.end();) {
    const auto last =
        std::find_if(first, gpus.end(), [&](const auto* gpu) { return gpu != *first; });
    text += fmt::format("{}{}x{}", text.empty() ? "" : ",", last - first, (*first)->id);
    first = last;
  }
  return text;
}

Status CheckNodeName(std::string_view name) {
  const bool fine = !name.empty() && name.size() <= kMaxNameLength &&
                    std::all_of(name.begin(), name.end(), IsNameCharacter);
  if (fine) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("bad node name {}: use 1 to {} letters, digits, '.', '_' or '-'",
                           Quote(name), kMaxNameLength)};
}

Status CheckNodeSpec(const NodeSpec& spec) {
  if (spec.gpus.empty() || spec.gpus.size() > kMaxGpusPerNode) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a node has 1 to {} GPUs, not {}", kMaxGpusPerNode, spec.gpus.size())};
  }
  if (!(spec.time_scale >= kMinTimeScale) || spec.time_scale > kMaxTimeScale) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("bad time scale {}: it must be from {} to {}", spec.time_scale,
                             kMinTimeScale, kMaxTimeScale)};
  }
  return Ok();
}

}  // namespace zeus::sim
