#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "apps/zeus/commands.h"
#include "apps/zeus/exit_code.h"
#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/process.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/device/knobs/knob_repair.h"

namespace zeus::cli {
namespace {

using Standing = KnobJournal::Standing;
using Outcome = KnobRepair::Outcome;

const char* Name(Standing standing) {
  switch (standing) {
    case Standing::kHeld:
      return "held";
    case Standing::kLeft:
      return "left";
    case Standing::kOutdated:
      return "outdated";
  }
  return "unknown";
}

const char* Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kRestored:
      return "restored";
    case Outcome::kDiscarded:
      return "discarded";
    case Outcome::kNotOurs:
      return "changed_by_others";
    case Outcome::kHeld:
      return "held";
    case Outcome::kFailed:
      return "failed";
  }
  return "unknown";
}

std::string ToText(const KnobJournal::Record& record, const std::string& here) {
  const KnobEntry& entry = record.entry;
  const std::string before = zeus::ToText(entry.before);
  const std::string owner = OwnerText(entry, here);
  const std::string since = zeus::ToText(entry.since);
  // The name alone is ambiguous: ranks that see one GPU each all call it gpu:0.
  const std::string& address = entry.device.pci_address;
  const std::string knob = KnobName(entry.kind, entry.device.name) +
                           (address.empty() ? "" : fmt::format(" at {}", address));
  switch (record.standing) {
    case Standing::kHeld:
      return fmt::format("{}: held by {} since {}; {} before", knob, owner, since, before);
    case Standing::kLeft:
      return fmt::format(
          "{}: left changed by {}, which is gone; {} before; fix: zeus knobs restore", knob, owner,
          before);
    case Standing::kOutdated:
      break;
  }
  return fmt::format("{}: changed before the last boot, at its default since", knob);
}

// Reports damaged entries, including those put aside before, whose former settings are unknown.
Result<bool> ReportDamage(const KnobJournal& journal, Json* list) {
  ZEUS_TRY(const auto damaged, journal.Damaged());
  for (const KnobJournal::Damage& damage : damaged) {
    if (list != nullptr) {
      list->push_back({{"state", "damaged"},
                       {"file", Printable(damage.file.string())},
                       {"reason", damage.reason}});
    } else {
      fmt::print(
          "{} is damaged ({}): what its knob was is not known; see zeus doctor; fix: zeus knobs "
          "restore --default\n",
          Printable(damage.file.string()), damage.reason);
    }
  }
  return !damaged.empty();
}

struct KnobFlags {
  bool json = false;
  bool force = false;
  bool to_default = false;
};

KnobJournal::Holders ChooseHolders(const KnobFlags& flags) {
  return flags.force ? KnobJournal::Holders::kOverrule : KnobJournal::Holders::kRespect;
}

Result<int> List(const KnobFlags& flags) {
  SystemClock clock;
  ZEUS_TRY(const auto folder, KnobFolder());
  const KnobJournal journal(clock, folder);
  ZEUS_TRY(const auto records, journal.List());
  const auto self = ThisProcess();
  const std::string here = self.ok() ? self.value().pid_namespace : "";
  Json list = Json::array();
  for (const auto& record : records) {
    if (!flags.json) PrintText(fmt::format("{}\n", ToText(record, here)));
    list.push_back(ToJson(record.entry));
    list.back()["state"] = Name(record.standing);
  }
  ZEUS_TRY(const bool damaged, ReportDamage(journal, flags.json ? &list : nullptr));
  if (flags.json) PrintJson(list);
  if (!flags.json && records.empty() && !damaged) fmt::print("no knob is turned\n");
  return damaged ? ExitCode(ErrorCode::kUnavailable) : 0;
}

Result<int> PutToDefault(const KnobFlags& flags) {
  SystemClock clock;
  ZEUS_TRY(const auto folder, KnobFolder());
  KnobJournal journal(clock, folder);
  ZEUS_TRY(const auto resets, ResetKnobs(journal, RealSurroundings(clock), ChooseHolders(flags)));
  Json list = Json::array();
  bool failed = false;
  for (const KnobReset& reset : resets) {
    failed = failed || !reset.done.ok();
    list.push_back({{"knob", reset.knob}, {"outcome", reset.done.ok() ? "default" : "failed"}});
    if (reset.done.ok()) list.back()["setting"] = reset.setting;
    if (!reset.done.ok()) list.back()["reason"] = reset.done.error().message;
    if (!flags.json && reset.done.ok())
      fmt::print("{} put to its default: {}\n", reset.knob, reset.setting);
    if (!flags.json && !reset.done.ok())
      fmt::print("{} could not be put to its default: {}\n", reset.knob,
                 reset.done.error().message);
  }
  if (flags.json) PrintJson(list);
  if (!flags.json && resets.empty()) fmt::print("there is no GPU here: see zeus doctor\n");
  return failed ? ExitCode(ErrorCode::kUnavailable) : 0;
}

Result<int> Restore(const KnobFlags& flags) {
  if (flags.to_default) return PutToDefault(flags);
  SystemClock clock;
  ZEUS_TRY(const auto folder, KnobFolder());
  KnobJournal journal(clock, folder);
  ZEUS_TRY(const auto repairs,
           RepairAllKnobs(journal, RealSurroundings(clock), ChooseHolders(flags)));
  Json list = Json::array();
  for (const KnobRepair& repair : repairs) {
    if (!flags.json) PrintText(fmt::format("{}\n", ToText(repair)));
    list.push_back(ToJson(repair.entry));
    list.back()["outcome"] = Name(repair.outcome);
    if (!repair.reason.empty()) list.back()["reason"] = repair.reason;
  }
  ZEUS_TRY(const bool damaged, ReportDamage(journal, flags.json ? &list : nullptr));
  if (flags.json) PrintJson(list);
  if (!flags.json && repairs.empty() && !damaged) fmt::print("nothing to restore\n");
  const bool left = std::ranges::any_of(repairs, [](const auto& r) {
    return r.outcome == Outcome::kFailed || r.outcome == Outcome::kHeld;
  });
  return left || damaged ? ExitCode(ErrorCode::kUnavailable) : 0;
}

}  // namespace

void AddKnobsCommand(Verb app, Action& action) {
  const Verb knobs =
      app.AddVerb("knobs", "Show and put back power limits and clocks that were changed");
  knobs.RequireVerb();
  auto flags = std::make_shared<KnobFlags>();
  const Verb list =
      knobs.AddVerb("list", "List knobs that programs hold and those that killed programs left");
  list.AddFlag("--json", flags->json, "Print JSON");
  list.Footer(
      "Exit code 0 when every changed knob is listed, also those that killed programs left. Exit\n"
      "code 6 when an entry is damaged: which knob it is about and what that was is not known.");
  list.OnChosen([&action, flags] { action = [flags] { return List(*flags); }; });
  const Verb restore = knobs.AddVerb("restore", "Restore knobs that killed programs left changed");
  restore.AddFlag("--json", flags->json, "Print JSON");
  restore.AddFlag("--force", flags->force,
                  "Also what a living program holds, or one of another container that was killed");
  restore.AddFlag("--default", flags->to_default,
                  "Put the power limits and clocks of all GPUs to the defaults of their driver");
  restore.Footer(
      "Exit code 6 when a knob stays changed: it is held, refuses, or its entry is damaged. A\n"
      "knob that somebody else has set meanwhile is left as it is.");
  restore.OnChosen([&action, flags] { action = [flags] { return Restore(*flags); }; });
}

}  // namespace zeus::cli
