#include "zeus/device/knobs/knob_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/device/knobs/capped_repair.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/device/knobs/knob_actuator.h"

namespace zeus {
namespace {

using Standing = KnobJournal::Standing;
using Holders = KnobJournal::Holders;
using Outcome = KnobRepair::Outcome;

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

struct Work {
  KnobJournal& journal;
  const Node& node;
  Holders holders = Holders::kRespect;
};

Result<KnobJournal::Repair> PutBack(const Work& work, const KnobJournal::Record& record) {
  KnobJournal& journal = work.journal;
  if (record.standing == Standing::kOutdated) {
    ZEUS_RETURN_IF_ERROR(journal.Discard(record.entry));
    return KnobJournal::Repair::kDiscarded;
  }
  ZEUS_TRY(const auto actuator, FindActuator(record.entry, work.node));
  return journal.PutBackLeftover(*actuator, work.holders);
}

std::optional<Outcome> ToOutcome(KnobJournal::Repair done) {
  switch (done) {
    case KnobJournal::Repair::kNothingToDo:
      break;
    case KnobJournal::Repair::kRestored:
      return Outcome::kRestored;
    case KnobJournal::Repair::kDiscarded:
      return Outcome::kDiscarded;
    case KnobJournal::Repair::kNotOurs:
      return Outcome::kNotOurs;
  }
  return std::nullopt;
}

// Returns nullopt when another process has repaired it already.
std::optional<KnobRepair> Repair(const Work& work, const KnobJournal::Record& record) {
  KnobRepair repair{.entry = record.entry, .outcome = Outcome::kFailed};
  const auto done = PutBack(work, record);
  if (!done.ok()) {
    const bool held = record.standing == Standing::kHeld && work.holders == Holders::kRespect;
    if (held) repair.outcome = Outcome::kHeld;
    repair.reason = done.error().message;
    return repair;
  }
  const auto outcome = ToOutcome(done.value());
  if (!outcome) return std::nullopt;
  repair.outcome = *outcome;
  return repair;
}

// Lowers a power limit to the cap, unless it is below that. nullopt where the entry is not worth
// anything any more.
Result<std::optional<Setting>> Lower(const Work& work, const KnobEntry& entry, Watts cap) {
  ZEUS_TRY(const auto actuator, FindActuator(entry, work.node));
  ZEUS_TRY(const auto adopted, work.journal.Adopt(*actuator));
  if (!adopted) return std::optional<Setting>();
  ZEUS_TRY(const KnobState present, actuator->Read());
  if (!present.setting || *present.setting <= Setting(cap)) return present.setting;
  std::vector<Setting> ours = adopted->ours;
  ours.emplace_back(cap);
  ZEUS_RETURN_IF_ERROR(work.journal.Note(*actuator, adopted->before, std::move(ours)));
  ZEUS_RETURN_IF_ERROR(actuator->Apply(Setting(cap)));
  return std::optional<Setting>(cap);
}

// Returns nullopt for a knob that no cap concerns.
std::optional<CappedRepair> RepairBelowCap(const Work& work, const KnobJournal::Record& record,
                                           const PowerCaps& caps) {
  if (record.entry.kind != KnobKind::kGpuPowerLimit || record.standing == Standing::kOutdated)
    return std::nullopt;
  const auto cap = caps.find(record.entry.device.uuid);
  if (cap == caps.end()) return std::nullopt;
  const auto lowered = Lower(work, record.entry, cap->second);
  if (lowered.ok() && !lowered.value()) return std::nullopt;
  CappedRepair repair{.repair = {.entry = record.entry, .outcome = Outcome::kFailed}};
  if (lowered.ok()) {
    repair.capped = lowered.value();
    return repair;
  }
  if (record.standing == Standing::kHeld) repair.repair.outcome = Outcome::kHeld;
  repair.repair.reason = lowered.error().message;
  return repair;
}

Result<std::vector<KnobJournal::Record>> Leftovers(const KnobJournal& journal) {
  ZEUS_TRY(auto records, journal.List());
  std::erase_if(records, [](const auto& record) { return record.standing == Standing::kHeld; });
  return records;
}

std::vector<KnobRepair> RepairAll(const Work& work,
                                  const std::vector<KnobJournal::Record>& records) {
  std::vector<KnobRepair> repairs;
  for (const auto& record : records)
    if (auto repair = Repair(work, record)) repairs.push_back(*std::move(repair));
  return repairs;
}

// Also what CUDA_VISIBLE_DEVICES and its relatives hide.
Result<Node> DiscoverAll(const Surroundings& machine) {
  Surroundings everything = machine;
  everything.environment = [&machine](const std::string& name) {
    return name.ends_with("_VISIBLE_DEVICES") ? std::nullopt : machine.environment(name);
  };
  return Discover(everything);
}

void Reset(const Work& work, std::unique_ptr<KnobActuator> actuator,
           std::vector<KnobReset>& resets) {
  const std::string knob = KnobName(actuator->kind(), actuator->device().name);
  const auto done = work.journal.PutToDefault(*actuator, work.holders);
  if (done.ok()) {
    resets.push_back({.knob = knob, .done = Ok(), .setting = done.value()});
  } else if (done.error().code != ErrorCode::kNotSupported) {
    resets.push_back({.knob = knob, .done = done.error()});
  }
}

}  // namespace

std::string ToText(const KnobRepair& repair) {
  const std::string knob = KnobName(repair.entry.kind, repair.entry.device.name);
  const std::optional<Setting>& before = repair.entry.before.setting;
  switch (repair.outcome) {
    case KnobRepair::Outcome::kRestored:
      if (repair.entry.kind == KnobKind::kPersistence) return knob + " put back";
      return before ? fmt::format("{} put back to {}", knob, ToText(*before))
                    : fmt::format("{} unlocked", knob);
    case KnobRepair::Outcome::kDiscarded:
      return fmt::format("{} is at its default since a reboot or a reload of the driver", knob);
    case KnobRepair::Outcome::kNotOurs:
      return fmt::format(
          "{} was set by somebody else since: left as it is ({} before Zeus turned it)", knob,
          ToText(repair.entry.before));
    case KnobRepair::Outcome::kHeld:
      return fmt::format("not put back: {}; zeus knobs restore --force puts it back all the same",
                         repair.reason);
    case KnobRepair::Outcome::kFailed:
      break;
  }
  return fmt::format("{} could not be put back: {}", knob, repair.reason);
}

Result<std::vector<KnobRepair>> RepairKnobs(KnobJournal& journal, const Node& node) {
  ZEUS_TRY(const auto leftovers, Leftovers(journal));
  return RepairAll({journal, node}, leftovers);
}

Result<std::vector<KnobRepair>> RepairKnobs(KnobJournal& journal, const Surroundings& machine) {
  ZEUS_TRY(const auto leftovers, Leftovers(journal));
  if (leftovers.empty()) return std::vector<KnobRepair>();
  ZEUS_TRY(const Node node, DiscoverAll(machine));
  return RepairAll({journal, node}, leftovers);
}

Result<std::vector<KnobRepair>> RepairAllKnobs(KnobJournal& journal, const Surroundings& machine,
                                               Holders holders) {
  ZEUS_TRY(const auto records, journal.List());
  if (records.empty()) return std::vector<KnobRepair>();
  ZEUS_TRY(const Node node, DiscoverAll(machine));
  return RepairAll({journal, node, holders}, records);
}

std::string ToText(const CappedRepair& repair) {
  if (!repair.capped) return ToText(repair.repair);
  const KnobEntry& entry = repair.repair.entry;
  return fmt::format(
      "{} stays at {}: the power budget has the watts above it ({} before Zeus "
      "turned it)",
      KnobName(entry.kind, entry.device.name), ToText(*repair.capped), ToText(entry.before));
}

Result<std::vector<CappedRepair>> RepairAllKnobs(KnobJournal& journal, const Surroundings& machine,
                                                 Holders holders, const PowerCaps& caps) {
  std::vector<CappedRepair> repairs;
  ZEUS_TRY(const auto records, journal.List());
  if (records.empty()) return repairs;
  ZEUS_TRY(const Node node, DiscoverAll(machine));
  const Work work{journal, node, holders};
  for (const auto& record : records) {
    if (auto capped = RepairBelowCap(work, record, caps))
      repairs.push_back(*std::move(capped));
    else if (auto repair = Repair(work, record))
      repairs.push_back({.repair = *std::move(repair)});
  }
  return repairs;
}

Result<std::vector<KnobReset>> ResetKnobs(KnobJournal& journal, const Surroundings& machine,
                                          Holders holders) {
  ZEUS_TRY(const Node node, DiscoverAll(machine));
  const Work work{journal, node, holders};
  std::vector<KnobReset> resets;
  for (const auto& gpu : node.gpus) {
    for (const KnobKind kind :
         {KnobKind::kGpuPowerLimit, KnobKind::kGraphicsClock, KnobKind::kMemoryClock})
      if (auto actuator = MakeActuator(kind, *gpu); actuator.ok())
        Reset(work, std::move(actuator).value(), resets);
  }
  ZEUS_TRY(const auto rest, journal.List());
  for (const KnobRepair& repair : RepairAll(work, rest)) {
    const bool failed = repair.outcome == Outcome::kFailed || repair.outcome == Outcome::kHeld;
    resets.push_back({.knob = KnobName(repair.entry.kind, repair.entry.device.name),
                      .done = failed ? Status(Error{ErrorCode::kUnavailable, repair.reason}) : Ok(),
                      .setting = ToText(repair.entry.before)});
  }
  return resets;
}

std::vector<UnexplainedLimit> FindUnexplainedLimits(const Node& node, const KnobJournal& journal) {
  std::vector<UnexplainedLimit> found;
  if (KnobPolicyOfMachine().caps_are_intended) return found;
  for (const auto& gpu : node.gpus) {
    const auto limit = gpu->NeedsJournal() ? gpu->CurrentPowerLimit() : Result<PowerLimit>(Error{});
    if (!limit.ok()) continue;
    const Watts requested = limit.value().requested;
    const Watts usual = limit.value().default_limit;
    if (requested >= usual || SameSetting(requested, usual)) continue;
    const auto actuator = MakeActuator(KnobKind::kGpuPowerLimit, *gpu);
    if (!actuator.ok() || journal.Knows(KnobKind::kGpuPowerLimit, actuator.value()->device()))
      continue;
    found.push_back({actuator.value()->device(), requested, usual});
  }
  return found;
}

std::string ToText(const UnexplainedLimit& limit) {
  return fmt::format(
      "the power limit of {} is {}, below its default of {}, and no journal explains it: an "
      "administrator set it, or a program left it whose journal is lost (zeus knobs restore "
      "--default puts it back)",
      limit.device.name, ToText(Setting(limit.limit)), ToText(Setting(limit.default_limit)));
}

void WarnOfUnexplainedLimits(const Node& node, Clock& clock) {
  auto folder = KnobFolder();
  const KnobJournal journal(clock, folder.ok() ? std::move(folder).value() : "/nonexistent");
  for (const UnexplainedLimit& limit : FindUnexplainedLimits(node, journal))
    log::Warning("{}", ToText(limit));
}

}  // namespace zeus
