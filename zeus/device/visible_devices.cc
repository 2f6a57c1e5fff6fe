#include "zeus/device/visible_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr std::string_view kGpuPrefix = "GPU-";
constexpr std::string_view kPartitionPrefix = "MIG-";

// For an identifier that is well formed: the caller decides what it means.
Error Unknown(std::string reason) { return {ErrorCode::kNotFound, std::move(reason)}; }

// The hexadecimal part, comparable: vendors differ in case and in whether they write "GPU-".
std::string BareUuid(std::string_view uuid) {
  if (uuid.starts_with(kGpuPrefix)) uuid.remove_prefix(kGpuPrefix.size());
  return LowerCase(uuid);
}

bool IsNumber(std::string_view entry) {
  return !entry.empty() &&
         std::ranges::all_of(entry, [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool SelectsNothing(std::string_view value) {
  const std::string_view trimmed = Trim(value);
  return trimmed.empty() || trimmed == "-1" || trimmed == "NoDevFiles";
}

Result<VisibleBoard> ByIndex(std::string_view entry, const std::vector<SelectableBoard>& boards) {
  const auto index = ParseUnsigned(entry);
  if (index.ok() && index.value() < boards.size())
    return VisibleBoard{static_cast<std::size_t>(index.value()), BoardShare::kWhole};
  if (boards.empty())
    return InvalidArgument(
        fmt::format("there is no GPU {}: this machine has none", Printable(entry)));
  return InvalidArgument(fmt::format("there is no GPU {}: this machine has GPUs 0 to {}",
                                     Printable(entry), boards.size() - 1));
}

Result<VisibleBoard> ByUuid(std::string_view entry, const std::vector<SelectableBoard>& boards) {
  const std::string wanted = BareUuid(entry);
  if (wanted.empty())
    return InvalidArgument(fmt::format("{} has no UUID after GPU-", Quote(entry)));
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < boards.size(); ++i) {
    if (!BareUuid(boards[i].uuid).starts_with(wanted)) continue;
    if (found)
      return InvalidArgument(fmt::format("{} is ambiguous: write more of the UUID", Quote(entry)));
    found = i;
  }
  if (!found) return Unknown(fmt::format("no GPU of this machine is called {}", Quote(entry)));
  return VisibleBoard{*found, BoardShare::kWhole};
}

// "MIG-GPU-<uuid>/<GPU instance>/<compute instance>", as drivers before 470 wrote it.
Result<VisibleBoard> ByOldPartition(std::string_view entry,
                                    const std::vector<SelectableBoard>& boards) {
  std::string_view rest = entry.substr(kPartitionPrefix.size());
  const std::size_t first = rest.find('/');
  const std::size_t last = rest.rfind('/');
  const bool well_formed = first != std::string_view::npos && first < last &&
                           IsNumber(rest.substr(first + 1, last - first - 1)) &&
                           IsNumber(rest.substr(last + 1));
  if (!well_formed) {
    return InvalidArgument(
        fmt::format("{} is not MIG-GPU-<uuid>/<GPU instance>/<compute instance>", Quote(entry)));
  }
  ZEUS_TRY(VisibleBoard parent, ByUuid(rest.substr(0, first), boards));
  parent.share = BoardShare::kPartition;
  return parent;
}

Result<VisibleBoard> ByPartition(std::string_view entry,
                                 const std::vector<SelectableBoard>& boards) {
  if (entry.substr(kPartitionPrefix.size()).starts_with(kGpuPrefix))
    return ByOldPartition(entry, boards);
  const std::string wanted = LowerCase(entry);
  for (std::size_t i = 0; i < boards.size(); ++i) {
    const auto is_wanted = [&](const std::string& id) { return LowerCase(id) == wanted; };
    if (std::ranges::any_of(boards[i].partitions, is_wanted))
      return VisibleBoard{i, BoardShare::kPartition};
  }
  return Unknown(fmt::format("no MIG instance of this machine is called {}", Quote(entry)));
}

Result<VisibleBoard> SelectOne(std::string_view entry, const std::vector<SelectableBoard>& boards) {
  if (IsNumber(entry)) return ByIndex(entry, boards);
  if (entry.starts_with(kGpuPrefix)) return ByUuid(entry, boards);
  if (entry.starts_with(kPartitionPrefix)) return ByPartition(entry, boards);
  if (entry.empty()) return InvalidArgument("an entry of the list is empty");
  return InvalidArgument(
      fmt::format("{} is neither an index nor a GPU-… or MIG-… identifier", Quote(entry)));
}

std::optional<VisibleBoard> Guess(std::string_view entry,
                                  const std::vector<SelectableBoard>& boards,
                                  const std::vector<VisibleBoard>& selected) {
  const auto share =
      entry.starts_with(kPartitionPrefix) ? BoardShare::kPartition : BoardShare::kWhole;
  for (std::size_t i = 0; i < boards.size(); ++i) {
    const auto taken = std::ranges::find(selected, i, &VisibleBoard::board);
    const bool shareable = taken == selected.end() || (taken->share == BoardShare::kPartition &&
                                                       share == BoardShare::kPartition);
    if (!boards[i].identified && shareable) return VisibleBoard{i, share, std::string(entry)};
  }
  return std::nullopt;
}

Result<VisibleBoard> SelectOrGuess(std::string_view entry,
                                   const std::vector<SelectableBoard>& boards,
                                   const std::vector<VisibleBoard>& selected) {
  auto one = SelectOne(entry, boards);
  if (one.ok() || one.error().code != ErrorCode::kNotFound) return one;
  if (auto guess = Guess(entry, boards, selected)) return *std::move(guess);
  return InvalidArgument(std::move(one).error().message);
}

std::vector<VisibleBoard> AllBoards(std::size_t count) {
  std::vector<VisibleBoard> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(VisibleBoard{i, BoardShare::kWhole});
  return all;
}

}  // namespace

Result<std::vector<VisibleBoard>> SelectVisibleBoards(std::string_view variable,
                                                      const std::optional<std::string>& value,
                                                      const std::vector<SelectableBoard>& boards) {
  if (!value) return AllBoards(boards.size());
  std::vector<VisibleBoard> selected;
  if (SelectsNothing(*value)) return selected;
  const std::string doing = fmt::format("{}={}", variable, Quote(*value));
  std::set<std::string_view> seen;
  for (const std::string_view entry : SplitAtCommas(*value)) {
    auto one = SelectOrGuess(entry, boards, selected);
    if (!one.ok()) return std::move(one).error().While(doing);
    const auto same_board = std::ranges::find(selected, one.value().board, &VisibleBoard::board);
    const bool sibling_partition = same_board != selected.end() &&
                                   same_board->share == BoardShare::kPartition &&
                                   one.value().share == BoardShare::kPartition;
    if (!seen.insert(entry).second || (same_board != selected.end() && !sibling_partition))
      return InvalidArgument(fmt::format("{} names a GPU twice", Quote(entry))).While(doing);
    if (!sibling_partition) selected.push_back(one.value());
  }
  return selected;
}

bool SelectsByIndex(const std::optional<std::string>& value) {
  return value && std::ranges::any_of(SplitAtCommas(*value), IsNumber);
}

Result<DeviceOrder> ParseDeviceOrder(const std::optional<std::string>& value) {
  if (!value || value->empty() || *value == "FASTEST_FIRST") return DeviceOrder::kFastestFirst;
  if (*value == "PCI_BUS_ID") return DeviceOrder::kPciBusId;
  return InvalidArgument(
      fmt::format("CUDA_DEVICE_ORDER={}: must be FASTEST_FIRST or PCI_BUS_ID", Quote(*value)));
}

}  // namespace zeus
