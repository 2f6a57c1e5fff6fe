#include "apps/zeus/doctor_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "apps/zeus/doctor_report.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/device/knob_journal.h"

namespace zeus::cli {
namespace {

struct Options {
  bool json = false;
  double seconds = 1.2;  // Enough for several updates of a 100 ms sensor and one of a 1 s sensor.
};

// Only tells: putting back is up to `zeus knobs restore` and to the next program that tunes.
void AddLeftovers(Clock& clock, DoctorReport& report) {
  const auto list = [&clock]() -> Result<std::vector<KnobJournal::Record>> {
    ZEUS_TRY(const auto folder, KnobFolder());
    return KnobJournal(clock, folder).List();
  };
  const auto records = list();
  if (!records.ok()) {
    report.absent.push_back(
        {"journal of knobs", records.error().message, "set ZEUS_KNOB_DIR to a folder of yours"});
    return;
  }
  for (const auto& [entry, standing] : records.value()) {
    if (standing != KnobJournal::Standing::kLeft) continue;
    report.leftovers.push_back(
        {.what = KnobName(entry.kind, entry.device.name),
         .reason =
             fmt::format("left changed by process {}, which is gone; it was {}", entry.owner.pid,
                         entry.before.setting ? ToText(*entry.before.setting) : "not locked"),
         .fix = "zeus knobs restore"});
  }
}

Result<int> Run(const Options& options) {
  SystemClock clock;
  ZEUS_TRY(Node node, Discover(RealSurroundings(clock)));
  DoctorReport report = Diagnose(node, clock, Seconds(options.seconds));
  AddLeftovers(clock, report);
  if (options.json) {
    PrintJson(ToJson(report));
  } else {
    Show(stdout, ToText(report, TerminalOf(STDOUT_FILENO)));
  }
  return report.AnyEnergySource() ? 0 : 1;
}

}  // namespace

void AddDoctorCommand(Verb app, Action& action) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.AddVerb(
      "doctor", "Show which sensors and knobs work here, why the others do not, and the fix");
  verb.AddFlag("--json", options->json, "Print JSON");
  verb.AddOption("--seconds", options->seconds, "How long to watch the sensors")
      .Check(NumberBetween(0, 60))
      .ShowDefault();
  verb.Footer("Exit code 0 when at least one energy source works, 1 otherwise.");
  verb.OnChosen([&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace zeus::cli
