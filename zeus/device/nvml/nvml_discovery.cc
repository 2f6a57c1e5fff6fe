#include "zeus/device/nvml/nvml_discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/text.h"
#include "zeus/device/nvml/nvml_error.h"
#include "zeus/device/nvml/nvml_gpu.h"
#include "zeus/device/nvml/nvml_identity.h"
#include "zeus/device/nvml/nvml_library.h"
#include "zeus/device/nvml/nvml_readers.h"
#include "zeus/device/nvml/nvml_session.h"
#include "zeus/device/visible_devices.h"

namespace zeus {
namespace nvml {
namespace {

constexpr const char* kGpus = "NVIDIA GPUs";
constexpr const char* kVisibleVariable = "CUDA_VISIBLE_DEVICES";
constexpr const char* kOrderVariable = "CUDA_DEVICE_ORDER";

// A GPU of the machine, whether or not this process may use it.
struct Board {
  unsigned index = 0;  // As NVML and nvidia-smi count.
  Device device = nullptr;
  Result<GpuIdentity> identity;  // The reason if it cannot be used.
};

std::optional<std::string> Variable(const Surroundings& surroundings, const char* name) {
  return surroundings.environment ? surroundings.environment(name) : std::nullopt;
}

Absence ToAbsence(std::string what, const Error& error) {
  ProblemAndRemedy split = SplitRemedy(error);
  // Root is needed for knobs, not for looking: what stands in the way here is a device file.
  if (error.code == ErrorCode::kPermissionDenied)
    split.remedy = "give the process access to /dev/nvidiactl and /dev/nvidia*";
  return {
      .what = std::move(what), .reason = std::move(split.problem), .fix = std::move(split.remedy)};
}

Findings Nothing(Absence absence) {
  Findings findings;
  findings.absent.push_back(std::move(absence));
  return findings;
}

Board FindBoard(const NvmlApi& api, unsigned index) {
  Device device = nullptr;
  const Return code = Call(api.get_handle_by_index, index, &device);
  if (code != kSuccess) return {index, nullptr, NvmlError(code, fmt::format("NVML GPU {}", index))};
  auto identity = ReadIdentity({.api = api, .device = device});
  if (!identity.ok())
    identity = std::move(identity).error().While(fmt::format("NVML GPU {}", index));
  return {index, device, std::move(identity)};
}

// In PCI order. NVML promises no order of its own; a lost board has no address to sort by, and
// then NVML's order is the best guess.
Result<std::vector<Board>> FindBoards(const NvmlApi& api) {
  unsigned count = 0;
  ZEUS_RETURN_IF_ERROR(ToStatus(Call(api.get_count, &count), "count GPUs"));
  std::vector<Board> boards;
  for (unsigned i = 0; i < count; ++i) boards.push_back(FindBoard(api, i));
  const auto known = [](const Board& board) { return board.identity.ok(); };
  if (std::ranges::all_of(boards, known)) {
    std::ranges::stable_sort(boards, {},
                             [](const Board& board) { return board.identity.value().pci_address; });
  }
  return boards;
}

std::vector<std::string> Partitions(const Target& board) {
  std::vector<std::string> partitions;
  unsigned count = 0;
  if (Call(board.api.get_max_mig_count, board.device, &count) != kSuccess) return partitions;
  for (unsigned i = 0; i < count; ++i) {
    Device instance = nullptr;
    // Slots without an instance answer NOT_FOUND.
    if (Call(board.api.get_mig_handle, board.device, i, &instance) != kSuccess) continue;
    auto uuid = ReadUuid({.api = board.api, .device = instance});
    if (uuid.ok()) partitions.push_back(std::move(uuid).value());
  }
  return partitions;
}

std::vector<SelectableBoard> Selectable(const NvmlApi& api, const std::vector<Board>& boards) {
  std::vector<SelectableBoard> selectable;
  for (const Board& board : boards) {
    if (!board.identity.ok()) {
      selectable.push_back({.uuid = "", .partitions = {}, .identified = false});
      continue;
    }
    selectable.push_back({.uuid = board.identity.value().uuid,
                          .partitions = Partitions({.api = api, .device = board.device})});
  }
  return selectable;
}

bool IsMixed(const std::vector<Board>& boards) {
  std::vector<std::string> models;
  for (const Board& board : boards) {
    if (board.identity.ok()) models.push_back(board.identity.value().model);
  }
  return std::ranges::adjacent_find(models, std::not_equal_to()) != models.end();
}

Absence UncertainNumbering() {
  return {.what = "CUDA's numbering of the GPUs",
          .reason =
              "this node has GPUs of several models and CUDA numbers the fastest first, by a "
              "rule that only CUDA knows; Zeus counts in PCI order",
          .fix = fmt::format("export {}=PCI_BUS_ID, or name GPUs by UUID in {}", kOrderVariable,
                             kVisibleVariable)};
}

Absence BoardLevelOnly(const std::string& name, const GpuIdentity& identity) {
  return {.what = fmt::format("{}: energy of the MIG instance", name),
          .reason = fmt::format("energy, power and limits exist only for the whole board {}; other "
                                "instances on it are included",
                                identity.uuid),
          .fix = ""};
}

Absence InstancesUnseen(const std::string& name, unsigned index) {
  return {.what = name + " in MIG mode",
          .reason =
              "energy, power and limits are those of the whole board; utilisation is not "
              "reported in MIG mode",
          .fix = fmt::format("sudo nvidia-smi -i {} -mig 0 to leave MIG mode", index)};
}

// A board that could not be opened keeps its number.
Absence Lost(const std::string& name, const VisibleBoard& visible, const Error& error) {
  Absence absence = ToAbsence(name, error);
  if (!visible.guessed_from.empty()) {
    absence.reason = fmt::format("{} may be the GPU that cannot be identified ({})",
                                 Printable(visible.guessed_from), absence.reason);
  }
  return absence;
}

Absence NothingVisible(const std::string& value) {
  return {.what = kGpus,
          .reason = fmt::format("{}={} hides all of them", kVisibleVariable, Quote(value)),
          .fix = fmt::format("unset {}", kVisibleVariable)};
}

void OpenVisible(const std::shared_ptr<NvmlSession>& session, const std::vector<Board>& boards,
                 const std::vector<VisibleBoard>& visible, unsigned first_index,
                 Findings& findings) {
  for (std::size_t i = 0; i < visible.size(); ++i) {
    const Board& board = boards[visible[i].board];
    const std::string name = fmt::format("gpu:{}", first_index + i);
    auto gpu = board.identity.ok() ? NvmlGpu::Open(session, board.device, name)
                                   : Result<std::unique_ptr<NvmlGpu>>(board.identity.error());
    if (!gpu.ok()) {
      findings.absent.push_back(Lost(name, visible[i], gpu.error()));
      ++findings.lost_gpus;
      continue;
    }
    if (visible[i].share == BoardShare::kPartition) {
      findings.absent.push_back(BoardLevelOnly(name, gpu.value()->identity()));
    } else if (InMigMode({.api = session->api(), .device = board.device})) {
      findings.absent.push_back(InstancesUnseen(name, board.index));
    }
    findings.gpus.push_back(std::move(gpu).value());
  }
}

}  // namespace

Result<Findings> DiscoverWith(const NvmlApi& api, const Surroundings& surroundings) {
  auto session = NvmlSession::Open(api);
  if (!session.ok()) return Nothing(ToAbsence(kGpus, session.error()));
  const auto found = FindBoards(api);
  if (!found.ok()) return Nothing(ToAbsence(kGpus, found.error()));
  const std::vector<Board>& boards = found.value();
  if (boards.empty())
    return Nothing({.what = kGpus, .reason = "the driver is loaded but finds no GPU", .fix = ""});

  const auto value = Variable(surroundings, kVisibleVariable);
  ZEUS_TRY(const DeviceOrder order, ParseDeviceOrder(Variable(surroundings, kOrderVariable)));
  ZEUS_TRY(const std::vector<VisibleBoard> visible,
           SelectVisibleBoards(kVisibleVariable, value, Selectable(api, boards)));

  Findings findings;
  if (visible.empty()) findings.absent.push_back(NothingVisible(*value));
  const bool numbered = !value || SelectsByIndex(value);
  if (order == DeviceOrder::kFastestFirst && numbered && !visible.empty() && IsMixed(boards))
    findings.absent.push_back(UncertainNumbering());
  OpenVisible(session.value(), boards, visible, surroundings.first_gpu_index, findings);
  return findings;
}

}  // namespace nvml

Result<Findings> DiscoverNvidia(const Surroundings& surroundings) {
  const auto chosen = nvml::Variable(surroundings, "ZEUS_NVML_LIBRARY");
  const bool overridden = chosen && !chosen->empty();
  const auto api = nvml::LoadNvml(overridden ? chosen : std::nullopt);
  if (api.ok()) return nvml::DiscoverWith(api.value(), surroundings);
  return nvml::Nothing({.what = nvml::kGpus,
                        .reason = api.error().message,
                        .fix = overridden ? "unset ZEUS_NVML_LIBRARY, or set it to the path of NVML"
                                          : "install the NVIDIA driver, or set ZEUS_NVML_LIBRARY"});
}

}  // namespace zeus
