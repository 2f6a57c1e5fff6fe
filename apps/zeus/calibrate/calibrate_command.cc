#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/calibrate/calibrate_session.h"
#include "apps/zeus/commands.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/client/node/open_node.h"
#include "zeus/device/node.h"
#include "zeus/monitor/profile_store.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {
namespace {

constexpr int kSignalExitCode = 128;  // Shells add the number of the signal: 130 for SIGINT.
constexpr unsigned kMostGpus = 1024;

struct Options {
  std::vector<unsigned> gpus;
  double seconds = 20;
  double period = 0.5;
  std::string load_command;
  std::string meter;
  std::optional<double> meter_delay;
  double meter_accuracy = 0.005;
  bool meter_sees_others = false;
  bool json = false;
  bool dry_run = false;
  bool show = false;
  bool remove = false;
};

Result<std::vector<Gpu*>> ChooseGpus(const Node& node, std::vector<unsigned> wanted) {
  if (node.gpus.empty())
    return Error{ErrorCode::kNotFound, "there is no GPU to calibrate here: see zeus doctor"};
  std::ranges::sort(wanted);
  wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
  std::vector<Gpu*> gpus;
  for (const unsigned index : wanted) {
    if (index >= node.gpus.size()) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("there is no GPU {}: this machine shows GPUs 0 to {}", index,
                               node.gpus.size() - 1)};
    }
    gpus.push_back(node.gpus[index].get());
  }
  if (!gpus.empty()) return gpus;
  for (const auto& gpu : node.gpus) gpus.push_back(gpu.get());
  return gpus;
}

void Print(const std::vector<GpuReport>& reports, bool json) {
  if (!json) {
    for (const GpuReport& report : reports) PrintText(ToText(report));
    return;
  }
  Json list = Json::array();
  for (const GpuReport& report : reports) list.push_back(ToJson(report));
  PrintJson(list);
}

// Prints the stored calibrations of the GPUs. Returns 1 when there are none.
Result<int> Show(const std::vector<Gpu*>& gpus, const ProfileStore& store, bool json) {
  std::vector<GpuReport> reports;
  for (const Gpu* gpu : gpus) {
    ProfileStore::Finding found = store.Find(gpu->identity());
    for (const std::string& remark : found.remarks) log::Warning("{}", remark);
    if (found.calibration) {
      reports.push_back({.device = gpu->name(),
                         .calibration = *std::move(found.calibration),
                         .failures = {},
                         .file = std::move(found.file)});
    } else if (!json) {
      PrintText(fmt::format("{}  {}  not calibrated\n", gpu->name(), gpu->identity().model));
    }
  }
  Print(reports, json);
  return reports.empty() ? 1 : 0;
}

Result<int> Remove(const std::vector<Gpu*>& gpus, const ProfileStore& store) {
  for (const Gpu* gpu : gpus) {
    auto removed = store.Remove(gpu->identity());
    if (!removed.ok()) return std::move(removed).error().While(gpu->name());
    PrintText(fmt::format("removed {}\n", removed.value().string()));
  }
  return 0;
}

Result<CalibrateOptions> MakeSession(const Options& options, std::size_t gpus) {
  CalibrateOptions session{.duration = Seconds(options.seconds),
                           .period = Seconds(options.period),
                           .load_command = options.load_command,
                           .meter = std::nullopt};
  if (options.meter.empty()) return session;
  if (gpus != 1) {
    return Error{ErrorCode::kInvalidArgument,
                 "a meter is compared with one GPU at a time: choose it with --gpus"};
  }
  session.meter = ExternalMeterOptions{.file = options.meter,
                                       .delay = std::nullopt,
                                       .accuracy = options.meter_accuracy,
                                       .alone = !options.meter_sees_others};
  if (options.meter_delay) session.meter->delay = Seconds(*options.meter_delay);
  return session;
}

// Returns 1 when there is a GPU without any measured sensor.
Result<int> Measure(Clock& clock, const std::vector<Gpu*>& gpus, const Options& options,
                    const ProfileStore& store) {
  ZEUS_TRY(const CalibrateOptions session, MakeSession(options, gpus.size()));
  if (::isatty(STDERR_FILENO) == 1) {
    PrintErrorText(
        fmt::format("measuring for {:g} s: leave the GPUs alone meanwhile\n", options.seconds));
  }
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals,
           SignalWatch::Start(SignalWatch::Program::kLoad));
  auto measured = Calibrate(clock, gpus, session, *signals);
  if (signals->stop_signal() != 0) {
    fmt::print(stderr, "zeus: interrupted: nothing was kept\n");
    return kSignalExitCode + signals->stop_signal();
  }
  ZEUS_TRY(std::vector<GpuReport> reports, std::move(measured));
  for (GpuReport& report : reports) {
    if (options.dry_run || !report.AnySensor()) continue;
    ZEUS_TRY(report.file, store.Save(report.calibration));
  }
  Print(reports, options.json);
  return std::ranges::all_of(reports, &GpuReport::AnySensor) ? 0 : 1;
}

// How a sensor behaves shows only to those who ask the driver themselves: the daemon's readings
// come when its recorder took them.
Result<Node> OpenForCalibration(Clock& clock, const Surroundings& here, const Options& options) {
  if (options.show || options.remove) return client::OpenNode(here);
  ZEUS_TRY(Node node, Discover(here));
  ZEUS_TRY(const client::NodeWay way, client::ChooseWay(clock));
  if (!node.gpus.empty() || !way.through_daemon) return node;
  return Error{ErrorCode::kNotSupported,
               "a calibration asks the driver itself, and the GPUs here are behind the node "
               "daemon: run it where the driver is, without ZEUSD_SOCK_PATH and ZEUSD_HOST_PORT"};
}

Result<int> Run(const Options& options) {
  SystemClock clock;
  const Surroundings here = RealSurroundings(clock);
  ZEUS_TRY(const Node node, OpenForCalibration(clock, here, options));
  ZEUS_TRY(const std::vector<Gpu*> gpus, ChooseGpus(node, options.gpus));
  const ProfileStore store = ProfileStore::FromEnvironment(here.environment);
  if (options.show) return Show(gpus, store, options.json);
  if (options.remove) return Remove(gpus, store);
  return Measure(clock, gpus, options, store);
}

void AddMeterOptions(Verb verb, Options& options) {
  constexpr double kLongestDelay = 60;
  const Option meter = verb.AddOption("--meter", options.meter,
                                      "Log of an external meter (time,watts): fit gain and offset");
  verb.AddOption("--meter-delay", options.meter_delay,
                 "Seconds by which the meter is late; found by correlation if not given")
      .Check(NumberBetween(-kLongestDelay, kLongestDelay))
      .Needs(meter);
  verb.AddOption("--meter-accuracy", options.meter_accuracy,
                 "Relative standard deviation of the meter itself")
      .Check(NumberBetween(0, 1))
      .ShowDefault()
      .Needs(meter);
  verb.AddFlag("--meter-sees-others", options.meter_sees_others,
               "The meter measures more than the GPU: keep the gain, not the offset")
      .Needs(meter);
}

}  // namespace

void AddCalibrateCommand(Verb app, Action& action) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.AddVerb(
      "calibrate", "Measure how the sensors of GPUs behave, for better measurements afterwards");
  verb.AddOption("--gpus", options->gpus, "Indices, as in 0,1; all if not given")
      .Delimiter(',')
      .Check(WholeNumberBetween(0, kMostGpus));
  verb.AddOption("--seconds", options->seconds, "How long to measure")
      .Check(NumberBetween(1, 3600))
      .ShowDefault();
  verb.AddOption("--period", options->period, "Mean period of the square-wave load, in seconds")
      .Check(NumberBetween(0.05, 10))
      .ShowDefault();
  verb.AddOption("--load-command", options->load_command,
                 "Keeps a GPU busy on \"1\" and idle on \"0\": see docs/calibration.md");
  AddMeterOptions(verb, *options);
  verb.AddFlag("--json", options->json, "Print JSON");
  const Option dry = verb.AddFlag("--dry-run", options->dry_run, "Measure and keep nothing");
  const Option show =
      verb.AddFlag("--show", options->show, "Print the stored calibrations; measure nothing");
  const Option remove = verb.AddFlag("--remove", options->remove, "Delete the stored calibrations");
  show.Excludes(remove).Excludes(dry);
  remove.Excludes(dry);
  verb.Footer(
      "Exit code 1 when nothing could be measured for some GPU, or --show has nothing to show.");
  verb.OnChosen([&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace zeus::cli
