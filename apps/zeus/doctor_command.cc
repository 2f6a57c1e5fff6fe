#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/zeus/commands.h"
#include "apps/zeus/doctor_bundle.h"
#include "apps/zeus/doctor_report.h"
#include "apps/zeus/first_gpu/first_gpu.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/client/node/open_node.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/monitor/sharing/activity_file.h"

namespace zeus::cli {
namespace {

struct Options {
  bool json = false;
  std::string bundle;
  bool first_gpu = false;
  unsigned gpu = 0;
  double minutes = 1;
  std::string load;
  double seconds = 1.2;  // Enough for several updates of a 100 ms sensor and one of a 1 s sensor.
};

// Only reports leftovers: `zeus knobs restore` and the next program that tunes restore them.
Status AddLeftovers(const KnobJournal& journal, DoctorReport& report) {
  ZEUS_TRY(const auto records, journal.List());
  for (const auto& [entry, standing] : records) {
    if (standing != KnobJournal::Standing::kLeft) continue;
    report.leftovers.push_back(
        {.what = KnobName(entry.kind, entry.device.name),
         .reason =
             fmt::format("left changed by process {}, which is gone; it was {}", entry.owner.pid,
                         entry.before.setting ? ToText(*entry.before.setting) : "not locked"),
         .fix = "zeus knobs restore"});
  }
  ZEUS_TRY(const auto damaged, journal.Damaged());
  for (const KnobJournal::Damage& damage : damaged)
    report.leftovers.push_back(
        {.what = "journal of knobs",
         .reason = fmt::format("{} is damaged ({}): what its knob was is not known",
                               Printable(damage.file.string()), damage.reason),
         .fix = "zeus knobs restore --default"});
  return Ok();
}

void AddUnexplained(const Node& node, const KnobJournal& journal, DoctorReport& report) {
  for (const UnexplainedLimit& limit : FindUnexplainedLimits(node, journal))
    report.leftovers.push_back(
        {.what = KnobName(KnobKind::kGpuPowerLimit, limit.device.name),
         .reason = fmt::format("{}, below its default of {}, and no journal explains it: an "
                               "administrator set it, or a program left it whose journal is lost",
                               zeus::ToText(Setting(limit.limit)),
                               zeus::ToText(Setting(limit.default_limit))),
         .fix = "zeus knobs restore --default, unless it is meant to be so"});
}

void AddKnobs(const Node& node, Clock& clock, DoctorReport& report) {
  auto folder = KnobFolder();
  // An unreadable journal is reported, but does not stop the diagnosis.
  const KnobJournal journal(clock, folder.ok() ? folder.value() : "/nonexistent");
  const Status read = folder.ok() ? AddLeftovers(journal, report) : Status(folder.error());
  if (!read.ok())
    report.absent.push_back(
        {"journal of knobs", read.error().message, "set ZEUS_KNOB_DIR to a folder of yours"});
  AddUnexplained(node, journal, report);
}

// Reports why processes cannot share the energy of a device, if they cannot. The monitor replaces a
// file of another version that no process uses.
void AddSharing(Clock& clock, DoctorReport& report) {
  constexpr const char* kWhat = "energy shared between processes";
  constexpr const char* kFolder = "set ZEUS_ACTIVITY_DIR to a folder of yours";
  const auto path = activity::DefaultActivityPath();
  if (!path.ok()) {
    report.absent.push_back({kWhat, path.error().message, kFolder});
    return;
  }
  std::error_code failure;
  if (!std::filesystem::exists(path.value(), failure)) return;
  const auto file = activity::ActivityFile::Open(path.value(), clock);
  if (file.ok()) return;
  const bool foreign = file.error().code == ErrorCode::kPermissionDenied;
  report.absent.push_back({kWhat, file.error().message,
                           foreign ? kFolder
                                   : fmt::format("end the programs that use it, then rm {}",
                                                 Printable(path.value().string()))});
}

struct Opened {
  Node node;
  std::string way;
};

// A daemon that cannot be used is reported, and the devices are looked at without it.
Result<Opened> OpenDevices(Clock& clock) {
  ZEUS_TRY(const client::NodeWay way, client::ChooseWay(clock));
  if (!way.through_daemon) {
    ZEUS_TRY(Node node, Discover(RealSurroundings(clock)));
    return Opened{.node = std::move(node), .way = "directly: " + way.reason};
  }
  auto node = client::NodeOfDaemon(clock, way.address, ProcessEnvironment());
  if (node.ok())
    return Opened{
        .node = std::move(node).value(),
        .way = fmt::format("through the node daemon at {}: {}", way.address.url, way.reason)};
  ZEUS_TRY(Node direct, Discover(RealSurroundings(clock)));
  direct.absent.push_back({.what = "node daemon",
                           .reason = fmt::format("{} ({})", node.error().message, way.reason),
                           .fix = "start it (systemctl start zeusd), or unset the variable"});
  return Opened{.node = std::move(direct),
                .way =
                    "directly for this report: programs fail, since "
                    "the node daemon cannot be used"};
}

// Five of the checks take as long as each is given.
Result<int> CheckGpu(const Options& options) {
  constexpr double kSecondsPerMinute = 60;
  constexpr int kTimedChecks = 5;
  ZEUS_TRY(const FirstGpuReport report,
           CheckFirstGpu({.gpu = options.gpu,
                          .duration = Seconds(options.minutes * kSecondsPerMinute / kTimedChecks),
                          .load = options.load}));
  if (options.json)
    PrintJson(ToJson(report));
  else
    PrintText(ToText(report));
  return report.AnyBroken() ? 1 : 0;
}

Result<int> Run(const Options& options) {
  if (options.first_gpu) return CheckGpu(options);
  SystemClock clock;
  ZEUS_TRY(Opened opened, OpenDevices(clock));
  DoctorReport report = Diagnose(opened.node, clock, Seconds(options.seconds));
  report.way = std::move(opened.way);
  AddKnobs(opened.node, clock, report);
  AddSharing(clock, report);
  if (!options.bundle.empty()) {
    ZEUS_RETURN_IF_ERROR(WriteDoctorBundle(options.bundle, ToJson(report)));
    return 0;
  }
  if (options.json) {
    PrintJson(ToJson(report));
  } else {
    Show(stdout, ToText(report, DescribeTerminal(STDOUT_FILENO)));
  }
  return report.AnyEnergySource() ? 0 : 1;
}

}  // namespace

void AddDoctorCommand(Verb app, Action& action) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.AddVerb(
      "doctor", "Show which sensors and knobs work here, why the others do not, and the fix");
  verb.AddFlag("--json", options->json, "Print JSON");
  verb.AddOption(
          "--bundle", options->bundle,
          "Write what a report of a mistake needs into an archive, without secrets and names")
      .Excludes("--json")
      .TypeName("FILE");
  const Option first =
      verb.AddFlag("--first-gpu", options->first_gpu,
                   "Check on a real board what Zeus promises; limits are changed and put back");
  verb.AddOption("--gpu", options->gpu, "The GPU of --first-gpu").Needs(first).ShowDefault();
  verb.AddOption("--minutes", options->minutes, "About how long --first-gpu takes")
      .Needs(first)
      .Check(NumberBetween(0.01, 600))
      .ShowDefault();
  verb.AddOption("--load", options->load,
                 "A command that keeps the GPU of --first-gpu busy, as for zeus calibrate")
      .Needs(first);
  verb.AddOption("--seconds", options->seconds, "How long to watch the sensors")
      .Check(NumberBetween(0, 60))
      .ShowDefault();
  verb.Footer("Exit code 0 when at least one energy source works, 1 otherwise.");
  verb.OnChosen([&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace zeus::cli
