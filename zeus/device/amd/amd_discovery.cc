#include "zeus/device/amd/amd_discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "zeus/device/amd/amd_gpu.h"
#include "zeus/device/amd/smi.h"
#include "zeus/device/amd/sysfs_board.h"
#include "zeus/device/visible_devices.h"

namespace zeus::amd {
namespace {

using Boards = std::vector<std::unique_ptr<Board>>;
using Positions = std::vector<std::size_t>;  // Indices into Boards.

struct RunningSmi {
  std::shared_ptr<Smi> smi;  // Null: none works here.
  std::vector<Smi::Device> devices;
};

// ROCm SMI finds boards in sysfs only and complains on stderr without any; AMD SMI has other ways.
enum class Needs { kNothing, kCards };

struct SmiChoice {
  const char* name;
  Needs needs;
  const char* variable;
  const char* package;
  const SmiStarters::Start& start;
};

Result<RunningSmi> Start(const SmiChoice& choice, const std::optional<std::string>& path) {
  ZEUS_TRY(auto smi, choice.start(path));
  ZEUS_TRY(auto devices, smi->Devices());
  if (devices.empty())
    return Error{ErrorCode::kUnavailable, std::string(choice.name) + " sees no GPU"};
  return RunningSmi{std::move(smi), std::move(devices)};
}

// The first library that works. A missing one is worth a word only where there is a board that it
// would serve, or where the user named it.
RunningSmi StartFirst(const Surroundings& surroundings, const SmiStarters& starters,
                      bool have_cards, std::vector<Absence>& absent) {
  for (const SmiChoice& choice : {SmiChoice{"AMD SMI", Needs::kNothing, "ZEUS_AMD_SMI_LIBRARY",
                                            "amd-smi-lib", starters.amd_smi},
                                  SmiChoice{"ROCm SMI", Needs::kCards, "ZEUS_ROCM_SMI_LIBRARY",
                                            "librocm-smi64-1", starters.rocm_smi}}) {
    const auto path = surroundings.environment(choice.variable);
    if (choice.needs == Needs::kCards && !have_cards && !path) continue;
    auto running = Start(choice, path);
    if (running.ok()) return std::move(running).value();
    const Error& error = running.error();
    if (error.code == ErrorCode::kNotFound && !have_cards && !path) continue;
    std::string fix = "check that amdgpu is loaded and that this user may use /dev/kfd";
    if (error.code == ErrorCode::kNotFound)
      fix = fmt::format("install {}, or set {} to the library", choice.package, choice.variable);
    if (path) fix = fmt::format("correct or unset {}", choice.variable);
    absent.push_back({choice.name, error.message, std::move(fix)});
  }
  return {};
}

Boards CollectBoards(std::vector<Card> cards, const RunningSmi& running) {
  Boards boards;
  for (Card& card : cards) boards.push_back(std::make_unique<SysfsBoard>(std::move(card)));
  for (const Smi::Device& device : running.devices) {
    const auto same = std::find_if(boards.begin(), boards.end(), [&](const auto& board) {
      return board->identity().pci_address == device.pci_address;
    });
    if (same == boards.end()) {
      boards.push_back(std::make_unique<SmiBoard>(
          running.smi, device, std::make_unique<Board>(IdentityFromSmi(device))));
    } else if (dynamic_cast<SmiBoard*>(same->get()) == nullptr) {
      *same = std::make_unique<SmiBoard>(running.smi, device, std::move(*same));
    }
  }
  std::sort(boards.begin(), boards.end(), [](const auto& a, const auto& b) {
    return a->identity().pci_address < b->identity().pci_address;
  });
  return boards;
}

// The driver answers a cap of 0 W for the second die of a card, and no power or 0 W.
bool IsSecondDie(Board& board) {
  const auto cap = board.Cap();
  if (!cap.ok() || cap.value().current > Watts(0) || cap.value().range.max > Watts(0)) return false;
  return std::ranges::none_of(std::array{PowerKind::kInstant, PowerKind::kOneSecondAverage},
                              [&](PowerKind kind) {
                                const auto power = board.Power(kind);
                                return power.ok() && power.value() > Watts(0);
                              });
}

// For each board: the die that counts for it, if it is a second one. The dies of a card follow
// each other on the bus.
std::vector<std::optional<std::string>> FindCountingDies(const Boards& boards) {
  std::vector<std::optional<std::string>> counting_dies;
  const Board* first_die = nullptr;
  for (const auto& board : boards) {
    if (!IsSecondDie(*board)) {
      first_die = board.get();
      counting_dies.emplace_back();
      continue;
    }
    const bool known =
        first_die != nullptr && first_die->identity().model == board->identity().model;
    counting_dies.emplace_back(known ? first_die->identity().pci_address
                                     : "a first die that is not on this machine");
  }
  return counting_dies;
}

Positions AllPositions(const Boards& boards) {
  Positions all(boards.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

// Boards as the runtime counts them: a partitioned one several times, one that the runtime cannot
// use not at all.
Positions CountedByRuntime(const Boards& boards, const std::filesystem::path& sysfs) {
  Positions counted;
  for (const std::string& address : RuntimeOrder(sysfs)) {
    for (std::size_t i = 0; i < boards.size(); ++i) {
      if (boards[i]->identity().pci_address == address) counted.push_back(i);
    }
  }
  return counted.empty() ? AllPositions(boards) : counted;
}

Result<Positions> Select(const char* variable, const std::optional<std::string>& value,
                         const Boards& boards, const Positions& from) {
  std::vector<SelectableBoard> selectable;
  for (const std::size_t position : from)
    selectable.push_back({.uuid = boards[position]->identity().uuid, .partitions = {}});
  ZEUS_TRY(const auto visible, SelectVisibleBoards(variable, value, selectable));
  Positions selected;
  for (const VisibleBoard& board : visible) selected.push_back(from[board.board]);
  return selected;
}

// Returns the positions in their order, each board only once.
Positions Distinct(const Positions& positions) {
  Positions distinct;
  for (const std::size_t position : positions) {
    if (std::ranges::find(distinct, position) == distinct.end()) distinct.push_back(position);
  }
  return distinct;
}

bool HasNvidiaDriver(const Surroundings& surroundings) {
  std::error_code ignored;
  return std::filesystem::exists(surroundings.procfs / "driver/nvidia", ignored);
}

Result<Positions> Visible(const Boards& boards, const Positions& counted,
                          const Surroundings& surroundings) {
  const auto rocr = surroundings.environment("ROCR_VISIBLE_DEVICES");
  const char* variable = "HIP_VISIBLE_DEVICES";
  auto hip = surroundings.environment(variable);
  if (!hip && !HasNvidiaDriver(surroundings)) {
    variable = "CUDA_VISIBLE_DEVICES";
    hip = surroundings.environment(variable);
  }
  ZEUS_TRY(const Positions of_runtime, Select("ROCR_VISIBLE_DEVICES", rocr, boards, counted));
  ZEUS_TRY(Positions visible, Select(variable, hip, boards, of_runtime));
  if (!rocr && !hip) {  // Boards that only draw pictures use energy too.
    const Positions all = AllPositions(boards);
    visible.insert(visible.end(), all.begin(), all.end());
  }
  return Distinct(visible);
}

void ReportUnbound(const std::vector<UnboundDevice>& unbound, std::vector<Absence>& absent) {
  for (const UnboundDevice& device : unbound) {
    absent.push_back({"AMD GPU " + device.pci_address,
                      device.driver.empty()
                          ? "no driver is bound to it"
                          : fmt::format("driver {} is bound to it", device.driver),
                      device.driver.empty() ? "modprobe amdgpu" : "bind it to amdgpu"});
  }
}

// Tells now what a reader would find out later.
void ReportMissingCounter(Board& board, const std::string& name, std::vector<Absence>& absent) {
  const auto energy = board.Energy();
  if (energy.ok()) return;
  const bool denied = energy.error().code == ErrorCode::kPermissionDenied;
  absent.push_back({"energy counter of " + name, energy.error().message,
                    denied ? "run as a user who may read the files of amdgpu" : ""});
}

}  // namespace

Result<Findings> Discover(const Surroundings& surroundings, const SmiStarters& starters) {
  Findings findings;
  CardList list = FindCards(surroundings.sysfs);
  const RunningSmi running =
      StartFirst(surroundings, starters, !list.cards.empty(), findings.absent);
  ReportUnbound(list.unbound, findings.absent);
  Boards boards = CollectBoards(std::move(list.cards), running);
  if (boards.empty()) {
    findings.absent.push_back(
        {"AMD GPUs",
         fmt::format("no card of amdgpu in {}", (surroundings.sysfs / "class/drm").string()), ""});
    return findings;
  }
  const auto counting_dies = FindCountingDies(boards);
  const Positions counted = CountedByRuntime(boards, surroundings.sysfs);
  ZEUS_TRY(const Positions visible, Visible(boards, counted, surroundings));
  if (visible.empty()) {
    findings.absent.push_back({"AMD GPUs", "the environment hides all of them",
                               "unset ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and "
                               "CUDA_VISIBLE_DEVICES"});
  }
  for (const std::size_t position : visible) {
    std::string name = fmt::format("gpu:{}", surroundings.first_gpu_index + findings.gpus.size());
    auto& board = boards[position];
    const auto& counting_die = counting_dies[position];
    if (!counting_die) ReportMissingCounter(*board, name, findings.absent);
    findings.gpus.push_back(std::make_unique<AmdGpu>(std::move(name), std::move(board),
                                                     surroundings.clock, counting_die));
  }
  return findings;
}

}  // namespace zeus::amd

namespace zeus {

Result<Findings> DiscoverAmd(const Surroundings& surroundings) {
  using Path = std::optional<std::string>;
  return amd::Discover(surroundings,
                       {.amd_smi = [](const Path& path) -> Result<std::shared_ptr<amd::Smi>> {
                          ZEUS_TRY(amd::AmdSmiApi api, amd::LoadAmdSmi(path));
                          return amd::StartAmdSmi(api);
                        },
                        .rocm_smi = [](const Path& path) -> Result<std::shared_ptr<amd::Smi>> {
                          ZEUS_TRY(amd::RocmSmiApi api, amd::LoadRocmSmi(path));
                          return amd::StartRocmSmi(api);
                        }});
}

}  // namespace zeus
