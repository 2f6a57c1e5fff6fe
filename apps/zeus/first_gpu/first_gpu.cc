#include "apps/zeus/first_gpu/first_gpu.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/calibrate/load.h"
#include "apps/zeus/first_gpu/killed_knob.h"
#include "zeus/base/clock.h"
#include "zeus/base/statistics.h"
#include "zeus/base/version.h"
#include "zeus/client/node/open_node.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/node.h"
#include "zeus/device/update_period.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kPollInterval = 5ms;
constexpr Seconds kSettled = 1500ms;  // A new limit is obeyed, and a one-second average has passed.
constexpr double kCounterTolerance = 0.05;  // As NVIDIA states of its sensors.
constexpr double kLimitTolerance = 0.05;
constexpr double kMostOverhead = 0.02;  // Share of one processor.
constexpr double kPercent = 100;

double Milliseconds(Seconds time) { return time / Seconds(1ms); }

// The checks on one GPU, with a load if there is one. One owner.
class Checks {
 public:
  Checks(Clock& clock, Gpu& gpu, SwitchedLoad* load, Seconds duration)
      : clock_(clock), gpu_(gpu), load_(load), duration_(duration) {}

  Check Sensors() {
    Check check{.name = "sensors", .promise = "the energy counter moves at least once a second"};
    const Busy busy(load_);
    const auto period = MeasureUpdatePeriods(clock_, {&gpu_}, duration_).front();
    const auto energy = gpu_.Energy();
    if (!energy.ok()) return NotHere(check, energy.error().message);
    check.verdict = period && period->period <= 1s ? CheckVerdict::kHeld : CheckVerdict::kBroken;
    check.finding = period ? fmt::format("a new value every {:.1f} ± {:.1f} ms ({} seen)",
                                         Milliseconds(period->period), Milliseconds(period->error),
                                         period->updates)
                           : "it did not move twice";
    return check;
  }

  // The counter against the sum of power times time, between two moments at which it moved.
  Check Counter() {
    Check check{.name = "energy counter",
                .promise = "agrees with integrated power within 5 % (and its own resolution)"};
    const Busy busy(load_);
    struct Edge {
      TimePoint time;
      Joules energy;
      Joules integral;
    };
    std::optional<Edge> first;
    std::optional<Edge> last;
    std::optional<Joules> seen;
    Joules integral(0);
    Joules step(0);
    TimePoint before = clock_.Now();
    for (const TimePoint end = before + duration_; clock_.Now() < end;
         clock_.SleepUntil(std::min(end, clock_.Now() + kPollInterval))) {
      const auto energy = gpu_.Energy();
      const auto power = gpu_.Power();
      if (!energy.ok()) return NotHere(check, energy.error().message);
      if (!power.ok()) return NotHere(check, power.error().message);
      const TimePoint now = clock_.Now();
      integral += power.value() * (now - before);
      before = now;
      const Joules total = energy.value().total;
      if (seen && total > *seen) {
        step = std::max(step, total - *seen);
        last = Edge{.time = now, .energy = total, .integral = integral};
        if (!first) first = last;
      }
      seen = total;
    }
    if (!first || last->time - first->time < duration_ / 2)
      return NotHere(check, "the counter did not move often enough");
    const Joules counted = last->energy - first->energy;
    const Joules integrated = last->integral - first->integral;
    const double difference = counted / integrated - 1;
    const bool agrees =
        std::fabs(difference) <= kCounterTolerance + 2 * (step / std::max(counted, step));
    check.verdict = agrees ? CheckVerdict::kHeld : CheckVerdict::kBroken;
    check.finding =
        fmt::format("counter {:.1f} J, integrated power {:.1f} J in {:.1f} s: {:+.2f} %{}",
                    counted.value(), integrated.value(), (last->time - first->time).count(),
                    difference * kPercent, load_ == nullptr ? ", idle" : "");
    return check;
  }

  // Every limit of the range is set, read back, and put back.
  Check Limits() {
    Check check{.name = "power limit", .promise = "any limit of its range is set and put back"};
    const auto before = gpu_.CurrentPowerLimit();
    if (!before.ok()) return NotHere(check, before.error().message);
    auto knob = GuardedKnob::Of(KnobKind::kGpuPowerLimit, gpu_);
    if (!knob.ok()) return NotHere(check, knob.error().message);
    const auto limits = SomeLimits(before.value());
    for (const Watts limit : limits) {
      const TimePoint begin = clock_.Now();
      const Status set = knob.value()->Set(limit);
      if (!set.ok()) return NotHere(check, set.error().message);
      latencies_.push_back(clock_.Now() - begin);
      if (const Status held = knob.value()->CheckInForce(limit); !held.ok())
        return Broken(check, held.error().message);
    }
    if (const Status restored = knob.value()->Restore(); !restored.ok())
      return Broken(check, restored.error().message);
    const auto after = gpu_.CurrentPowerLimit();
    if (!after.ok()) return Broken(check, after.error().message);
    const bool back = SameSetting(after.value().requested, before.value().requested);
    check.verdict = back ? CheckVerdict::kHeld : CheckVerdict::kBroken;
    check.finding =
        fmt::format("{:.0f} W to {:.0f} W, {} limits; {:.1f} W before, {:.1f} W after",
                    before.value().range.min.value(), limits.front().value(), limits.size(),
                    before.value().requested.value(), after.value().requested.value());
    return check;
  }

  Check Latency() const {
    Check check{.name = "setting a limit", .promise = "takes less than 100 ms"};
    if (latencies_.empty()) return NotHere(check, "no limit could be set");
    std::vector<Seconds> sorted = latencies_;
    std::ranges::sort(sorted);
    const Seconds median = sorted[sorted.size() / 2];
    check.verdict = median < 100ms ? CheckVerdict::kHeld : CheckVerdict::kBroken;
    check.finding = fmt::format("median {:.1f} ms, longest {:.1f} ms, the reading back included",
                                Milliseconds(median), Milliseconds(sorted.back()));
    return check;
  }

  // Under load the board draws no more than its limit.
  Check Obedience() {
    Check check{.name = "limit under load", .promise = "the board draws at most its limit + 5 %"};
    if (load_ == nullptr) return NotHere(check, "there is no load: give one with --load COMMAND");
    const auto before = gpu_.CurrentPowerLimit();
    if (!before.ok()) return NotHere(check, before.error().message);
    auto knob = GuardedKnob::Of(KnobKind::kGpuPowerLimit, gpu_);
    if (!knob.ok()) return NotHere(check, knob.error().message);
    const Busy busy(load_);
    check.verdict = CheckVerdict::kHeld;
    for (const Watts limit : SomeLimits(before.value())) {
      if (const Status set = knob.value()->Set(limit); !set.ok())
        return NotHere(check, set.error().message);
      clock_.SleepFor(kSettled);
      const auto power = MeanPower(std::max<Seconds>(1s, duration_ / 4));
      if (!power.ok()) return NotHere(check, power.error().message);
      check.finding += fmt::format("{}{:.0f} W at {:.0f} W", check.finding.empty() ? "" : ", ",
                                   power.value().value(), limit.value());
      if (power.value() > limit * (1 + kLimitTolerance)) check.verdict = CheckVerdict::kBroken;
    }
    if (const Status restored = knob.value()->Restore(); !restored.ok())
      return Broken(check, restored.error().message);
    return check;
  }

 private:
  // Keeps the GPU busy while it lives.
  class Busy {
   public:
    explicit Busy(SwitchedLoad* load) : load_(load) { Switch(calibration::LoadState::kBusy); }
    ~Busy() { Switch(calibration::LoadState::kIdle); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    void Switch(calibration::LoadState state) {
      if (load_ != nullptr) (void)load_->Switch(state);
    }
    SwitchedLoad* load_;
  };

  static Check NotHere(Check check, std::string reason) {
    check.verdict = CheckVerdict::kNotHere;
    check.finding = std::move(reason);
    return check;
  }
  static Check Broken(Check check, std::string reason) {
    check.verdict = CheckVerdict::kBroken;
    check.finding = std::move(reason);
    return check;
  }

  // From the present limit, above which Zeus does not go, to the lowest.
  static std::vector<Watts> SomeLimits(const PowerLimit& limit) {
    constexpr int kSteps = 4;
    std::vector<Watts> limits;
    const Watts highest = std::min(limit.requested, limit.range.max);
    for (int i = 0; i <= kSteps; ++i) {
      const Watts exact = highest + (limit.range.min - highest) * (i / double{kSteps});
      limits.emplace_back(std::max(std::floor(exact.value()), limit.range.min.value()));
    }
    return limits;
  }

  Result<Watts> MeanPower(Seconds duration) {
    Joules energy(0);
    const TimePoint begin = clock_.Now();
    TimePoint before = begin;
    while (before < begin + duration) {
      clock_.SleepFor(kPollInterval);
      ZEUS_TRY(const Watts power, gpu_.Power());
      const TimePoint now = clock_.Now();
      energy += power * (now - before);
      before = now;
    }
    return energy / (before - begin);
  }

  Clock& clock_;
  Gpu& gpu_;
  SwitchedLoad* load_;
  const Seconds duration_;
  std::vector<Seconds> latencies_;
};

Seconds ProcessorTime() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return Seconds(std::chrono::seconds(time.tv_sec)) +
           Seconds(std::chrono::microseconds(time.tv_usec));
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Check CheckOverhead(Clock& clock, Seconds duration) {
  Check check{.name = "sampling", .promise = "costs at most 2 % of one processor"};
  auto monitor = NodeMonitor::OpenThisMachine(clock);
  if (!monitor.ok()) {
    check.finding = monitor.error().message;
    return check;
  }
  const Seconds before = ProcessorTime();
  const TimePoint begin = clock.Now();
  clock.SleepFor(duration);
  const double share = (ProcessorTime() - before) / (clock.Now() - begin);
  check.verdict = share <= kMostOverhead ? CheckVerdict::kHeld : CheckVerdict::kBroken;
  check.finding =
      fmt::format("{:.2f} % of one processor for {} GPUs and {} CPUs", share * kPercent,
                  monitor.value()->node().gpus.size(), monitor.value()->node().cpus.size());
  return check;
}

Check CheckDaemon(Clock& clock) {
  Check check{.name = "node daemon", .promise = "shows the same devices as the driver"};
  const auto address = client::FindDaemon();
  if (!address.ok()) {
    check.finding = address.error().message;
    return check;
  }
  const auto remote = client::NodeOfDaemon(clock, address.value(), ProcessEnvironment());
  const auto direct = Discover(RealSurroundings(clock));
  if (!remote.ok() || !direct.ok()) {
    check.finding =
        fmt::format("no daemon runs: {}", (remote.ok() ? direct : remote).error().message);
    return check;
  }
  const auto& gpus = remote.value().gpus;
  const bool same = std::ranges::equal(
      gpus, direct.value().gpus, {}, [](const auto& gpu) { return gpu->identity().uuid; },
      [](const auto& gpu) { return gpu->identity().uuid; });
  check.verdict = same ? CheckVerdict::kHeld : CheckVerdict::kBroken;
  check.finding = fmt::format("{} GPUs behind the daemon, {} behind the driver", gpus.size(),
                              direct.value().gpus.size());
  return check;
}

// Energy of CPUs moves while this process computes.
Check CheckCpus(Clock& clock, const Node& node, Seconds duration) {
  Check check{.name = "CPU energy", .promise = "grows while the CPU works (RAPL)"};
  if (node.cpus.empty()) {
    check.finding = "this machine shows no energy of its CPUs";
    for (const Absence& absence : node.absent)
      if (absence.what.find("CPU") != std::string::npos) check.finding = absence.reason;
    return check;
  }
  CpuPackage& cpu = *node.cpus.front();
  const auto begin = cpu.Energy();
  clock.SleepFor(std::min<Seconds>(duration, 2s));
  const auto end = cpu.Energy();
  if (!begin.ok() || !end.ok()) {
    check.finding = (begin.ok() ? end : begin).error().message;
    return check;
  }
  const Joules used = end.value().total - begin.value().total;
  check.verdict = used > Joules(0) ? CheckVerdict::kHeld : CheckVerdict::kBroken;
  check.finding = fmt::format("{} used {:.2f} J", cpu.name(), used.value());
  return check;
}

Check CheckAmd(const Node& node) {
  Check check{.name = "AMD GPU", .promise = "is read through the kernel's files"};
  check.finding = "this machine has no AMD GPU";
  for (const auto& gpu : node.gpus) {
    if (gpu->identity().vendor != Vendor::kAmd) continue;
    const auto energy = gpu->Energy();
    check.verdict = energy.ok() ? CheckVerdict::kHeld : CheckVerdict::kBroken;
    check.finding = energy.ok()
                        ? fmt::format("{}: {:.1f} J", gpu->name(), energy.value().total.value())
                        : energy.error().message;
  }
  return check;
}

Check CheckPartitions(const Node& node) {
  Check check{.name = "MIG", .promise = "energy is said to be of the whole board"};
  check.finding = "no GPU is partitioned";
  for (const Absence& absence : node.absent) {
    if (absence.reason.find("MIG") == std::string::npos) continue;
    check.verdict = CheckVerdict::kHeld;
    check.finding = absence.reason;
  }
  return check;
}

Result<std::unique_ptr<SwitchedLoad>> FindLoad(Clock& clock, Gpu& gpu, const std::string& command,
                                               SignalWatch& signals) {
  if (!command.empty()) return StartCommandLoad(clock, command, gpu, signals);
  return OpenSimulatedLoad(clock, gpu);
}

}  // namespace

Result<FirstGpuReport> CheckFirstGpu(const FirstGpuOptions& options) {
  const Check killed = CheckKilledKnob(options.gpu);
  SystemClock clock;
  ZEUS_TRY(const Node node, Discover(RealSurroundings(clock)));
  if (options.gpu >= node.gpus.size())
    return Error{ErrorCode::kNotFound,
                 fmt::format("there is no GPU {}: zeus doctor says what is here", options.gpu)};
  Gpu& gpu = *node.gpus[options.gpu];
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::WatchNothing());
  ZEUS_TRY(const auto load, FindLoad(clock, gpu, options.load, *signals));
  struct utsname system {};
  ::uname(&system);
  FirstGpuReport report{.zeus = std::string(Version()),
                        .gpu = gpu.identity().model,
                        .driver = gpu.identity().driver,
                        .kernel = system.release,
                        .checks = {}};
  Checks checks(clock, gpu, load.get(), options.duration);
  report.checks.push_back(checks.Sensors());
  report.checks.push_back(checks.Counter());
  report.checks.push_back(checks.Limits());
  report.checks.push_back(checks.Latency());
  report.checks.push_back(checks.Obedience());
  report.checks.push_back(killed);
  report.checks.push_back(CheckOverhead(clock, options.duration));
  report.checks.push_back(CheckDaemon(clock));
  report.checks.push_back(CheckCpus(clock, node, options.duration));
  report.checks.push_back(CheckAmd(node));
  report.checks.push_back(CheckPartitions(node));
  return report;
}

}  // namespace zeus::cli
