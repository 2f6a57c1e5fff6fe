#include "zeus/device/knob_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "zeus/device/cpu_actuator.h"
#include "zeus/device/gpu_actuators.h"

namespace zeus {
namespace {

using Standing = KnobJournal::Standing;

bool IsSame(const Gpu& gpu, const KnobDevice& device) {
  if (!device.uuid.empty()) return gpu.identity().uuid == device.uuid;
  return !device.pci_address.empty() && gpu.identity().pci_address == device.pci_address;
}

Result<std::unique_ptr<KnobActuator>> FindActuator(const KnobEntry& entry, const Node& node) {
  if (entry.kind == KnobKind::kCpuPowerLimit) {
    for (const auto& cpu : node.cpus)
      if (cpu->name() == entry.device.name) return MakeActuator(*cpu);
  } else {
    for (const auto& gpu : node.gpus)
      if (IsSame(*gpu, entry.device)) return MakeActuator(entry.kind, *gpu);
  }
  return Error{
      ErrorCode::kNotFound,
      fmt::format("{} {} is not here: see zeus doctor", entry.device.name,
                  entry.device.uuid.empty() ? entry.device.pci_address : entry.device.uuid)};
}

Result<KnobJournal::Repair> PutBack(KnobJournal& journal, const KnobJournal::Record& record,
                                    const Node& node) {
  if (record.standing == Standing::kOutdated) {
    ZEUS_RETURN_IF_ERROR(journal.Discard(record.entry));
    return KnobJournal::Repair::kDiscarded;
  }
  ZEUS_TRY(const auto actuator, FindActuator(record.entry, node));
  return journal.PutBackLeftover(*actuator);
}

// nullopt when somebody else was faster.
std::optional<KnobRepair> Repair(KnobJournal& journal, const KnobJournal::Record& record,
                                 const Node& node) {
  KnobRepair repair{.entry = record.entry, .outcome = KnobRepair::Outcome::kFailed};
  const auto done = PutBack(journal, record, node);
  if (!done.ok()) {
    repair.reason = done.error().message;
    return repair;
  }
  if (done.value() == KnobJournal::Repair::kNothingToDo) return std::nullopt;
  repair.outcome = done.value() == KnobJournal::Repair::kRestored ? KnobRepair::Outcome::kRestored
                                                                  : KnobRepair::Outcome::kDiscarded;
  return repair;
}

Result<std::vector<KnobJournal::Record>> Leftovers(const KnobJournal& journal) {
  ZEUS_TRY(auto records, journal.List());
  std::erase_if(records, [](const auto& record) { return record.standing == Standing::kHeld; });
  return records;
}

std::vector<KnobRepair> RepairAll(KnobJournal& journal,
                                  const std::vector<KnobJournal::Record>& records,
                                  const Node& node) {
  std::vector<KnobRepair> repairs;
  for (const auto& record : records)
    if (auto repair = Repair(journal, record, node)) repairs.push_back(*std::move(repair));
  return repairs;
}

}  // namespace

std::string ToText(const KnobRepair& repair) {
  const std::string knob = KnobName(repair.entry.kind, repair.entry.device.name);
  const std::optional<Setting>& before = repair.entry.before.setting;
  switch (repair.outcome) {
    case KnobRepair::Outcome::kRestored:
      return before ? fmt::format("{} put back to {}", knob, ToText(*before))
                    : fmt::format("{} unlocked", knob);
    case KnobRepair::Outcome::kDiscarded:
      return fmt::format("{} is at its default since a reboot or a reload of the driver", knob);
    case KnobRepair::Outcome::kFailed:
      break;
  }
  return fmt::format("{} could not be put back: {}", knob, repair.reason);
}

Result<std::vector<KnobRepair>> RepairKnobs(KnobJournal& journal, const Node& node) {
  ZEUS_TRY(const auto leftovers, Leftovers(journal));
  return RepairAll(journal, leftovers, node);
}

Result<std::vector<KnobRepair>> RepairKnobs(KnobJournal& journal, const Surroundings& machine) {
  ZEUS_TRY(const auto leftovers, Leftovers(journal));
  if (leftovers.empty()) return std::vector<KnobRepair>();
  Surroundings everything = machine;
  everything.environment = [&machine](const std::string& name) {
    return name.ends_with("_VISIBLE_DEVICES") ? std::nullopt : machine.environment(name);
  };
  ZEUS_TRY(const Node node, Discover(everything));
  return RepairAll(journal, leftovers, node);
}

}  // namespace zeus
