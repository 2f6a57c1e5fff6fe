#include "apps/zeus/doctor_command.h"

#include <fmt/format.h>

#include <memory>

#include "apps/zeus/doctor_report.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "zeus/base/clock.h"

namespace zeus::cli {
namespace {

struct Options {
  bool json = false;
  double seconds = 1.2;  // Enough for several updates of a 100 ms sensor and one of a 1 s sensor.
};

Result<int> Run(const Options& options) {
  SystemClock clock;
  ZEUS_TRY(Node node, Discover(RealSurroundings(clock)));
  const DoctorReport report = Diagnose(node, clock, Seconds(options.seconds));
  if (options.json) {
    PrintJson(ToJson(report));
  } else {
    fmt::print("{}", ToText(report));
  }
  return report.AnyEnergySource() ? 0 : 1;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "doctor", "Show which sensors and knobs work here, why the others do not, and the fix");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->add_option("--seconds", options->seconds, "How long to watch the sensors")
      ->check(NumberBetween(0, 60))
      ->capture_default_str();
  verb->footer("Exit code 0 when at least one energy source works, 1 otherwise.");
  verb->callback([&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace zeus::cli
