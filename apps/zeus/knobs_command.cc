#include "apps/zeus/knobs_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "apps/zeus/exit_code.h"
#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/device/knob_repair.h"

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
    case Outcome::kFailed:
      return "failed";
  }
  return "unknown";
}

std::string ToText(const KnobJournal::Record& record) {
  const KnobEntry& entry = record.entry;
  const std::string before = entry.before.setting ? ToText(*entry.before.setting) : "not locked";
  const std::string since = zeus::ToText(entry.since);
  // Ranks that see one GPU each all call it gpu:0.
  const std::string& address = entry.device.pci_address;
  const std::string knob = KnobName(entry.kind, entry.device.name) +
                           (address.empty() ? "" : fmt::format(" at {}", address));
  switch (record.standing) {
    case Standing::kHeld:
      return fmt::format("{}: held by process {} since {}; {} before", knob, entry.owner.pid, since,
                         before);
    case Standing::kLeft:
      return fmt::format(
          "{}: left changed by process {}, which is gone; {} before; fix: zeus knobs "
          "restore",
          knob, entry.owner.pid, before);
    case Standing::kOutdated:
      break;
  }
  return fmt::format("{}: changed before the last boot, at its default since", knob);
}

Result<int> List(bool json) {
  SystemClock clock;
  ZEUS_TRY(const auto folder, KnobFolder());
  ZEUS_TRY(const auto records, KnobJournal(clock, folder).List());
  Json list = Json::array();
  for (const auto& record : records) {
    if (!json) PrintText(fmt::format("{}\n", ToText(record)));
    list.push_back(ToJson(record.entry));
    list.back()["state"] = Name(record.standing);
  }
  if (json) PrintJson(list);
  if (!json && records.empty()) fmt::print("no knob is turned\n");
  return 0;
}

Result<int> Restore(bool json) {
  SystemClock clock;
  ZEUS_TRY(const auto folder, KnobFolder());
  KnobJournal journal(clock, folder);
  ZEUS_TRY(const auto repairs, RepairKnobs(journal, RealSurroundings(clock)));
  Json list = Json::array();
  for (const KnobRepair& repair : repairs) {
    if (!json) PrintText(fmt::format("{}\n", ToText(repair)));
    list.push_back(ToJson(repair.entry));
    list.back()["outcome"] = Name(repair.outcome);
    if (!repair.reason.empty()) list.back()["reason"] = repair.reason;
  }
  if (json) PrintJson(list);
  if (!json && repairs.empty()) fmt::print("nothing to restore\n");
  const bool failed =
      std::ranges::any_of(repairs, [](const auto& r) { return r.outcome == Outcome::kFailed; });
  return failed ? ExitCode(ErrorCode::kUnavailable) : 0;
}

void AddVerb(Verb parent, Action& action, const char* name, const char* help,
             Result<int> (*run)(bool json)) {
  auto json = std::make_shared<bool>(false);
  const Verb verb = parent.AddVerb(name, help);
  verb.AddFlag("--json", *json, "Print JSON");
  verb.OnChosen([&action, json, run] { action = [json, run] { return run(*json); }; });
}

}  // namespace

void AddKnobsCommand(Verb app, Action& action) {
  const Verb knobs =
      app.AddVerb("knobs", "Show and put back power limits and clocks that were changed");
  knobs.RequireVerb();
  AddVerb(knobs, action, "list", "Show who holds which knob, and what killed programs left", List);
  AddVerb(knobs, action, "restore", "Put back what killed programs left", Restore);
}

}  // namespace zeus::cli
