#include "apps/zeus/monitor_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/power_table.h"
#include "zeus/base/clock.h"

namespace zeus::cli {
namespace {

struct Options {
  double interval = 1.0;
  double duration = 0;  // 0: until interrupted.
};

// In a terminal the table is redrawn in place; in a pipe each one follows the last.
Status Show(const std::vector<std::string>& rows, bool redraw) {
  if (redraw) fmt::print("\x1b[{}A", rows.size());
  for (const std::string& row : rows) fmt::print("{}{}\n", redraw ? "\x1b[2K" : "", row);
  return FlushOutput();
}

Result<int> Run(const Options& options) {
  SystemClock clock;
  ZEUS_TRY(Node node, Discover(RealSurroundings(clock)));
  if (node.gpus.empty() && node.cpus.empty() && node.rails.empty())
    return Error{ErrorCode::kNotFound, "nothing to monitor here: see zeus doctor"};

  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const TimePoint start = clock.Now();
  PowerTable table(node);
  for (long round = 0;; ++round) {
    const Seconds elapsed = clock.Now() - start;
    ZEUS_RETURN_IF_ERROR(Show(table.Rows(elapsed), terminal && round > 0));
    const Seconds next = Seconds(options.interval) * static_cast<double>(round + 1);
    if (options.duration > 0 && next > Seconds(options.duration)) break;
    clock.SleepUntil(start + next);
  }
  return 0;
}

}  // namespace

void AddMonitorCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("monitor", "Show power, energy and temperature of every device, live");
  verb->add_option("--interval", options->interval, "Seconds between two tables")
      ->check(NumberBetween(0.01, 3600))
      ->capture_default_str();
  verb->add_option("--duration", options->duration, "Stop after this many seconds (0: never)")
      ->check(NumberBetween(0, 1e9))
      ->capture_default_str();
  verb->callback([&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace zeus::cli
