// The energy plugin: what `scontrol show node`, `sstat` and `sacct` say about energy.
//
// slurmd asks it for the node, slurmstepd for its step. A step is answered with the energy of the
// job's own GPUs and of its share of the CPUs while the step runs, as zeusd books it; energies are
// whole joules that never fall. Without a daemon the last energy stands, and watts are unknown.
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "integrations/slurm/job_hooks.h"
#include "integrations/slurm/json_text.h"
#include "integrations/slurm/zeusd_socket.h"

extern "C" {
#pragma GCC visibility push(default)
extern const char plugin_name[] = "Energy of GPUs and CPUs from zeusd";
extern const char plugin_type[] = "acct_gather_energy/zeus";
extern const std::uint32_t plugin_version = SLURM_VERSION_NUMBER;
#pragma GCC visibility pop
// Exported by Slurm's daemons.
extern void slurm_info(const char* format, ...) __attribute__((format(printf, 1, 2)));
extern void slurm_debug(const char* format, ...) __attribute__((format(printf, 1, 2)));
}

namespace zeus::slurm {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestAsk = 100ms;
// After a daemon that did not answer; slurmstepd asks about once a second.
constexpr auto kPauseAfterSilence = 2s;

struct EnergyNow {
  double joules = 0;
  std::optional<double> watts{};
};

std::string SocketPath() {
  const char* path = std::getenv("ZEUSD_SOCK_PATH");
  if (path != nullptr && *path != '\0') return path;
  return std::string(kDefaultSocket);
}

// "slurmstepd: [123.0]" of a step's process; nullopt in slurmd, which is called otherwise.
std::optional<StepOfJob> StepOfThisProcess() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  constexpr std::string_view kStart = "slurmstepd: [";
  const std::size_t begin = line.find(kStart);
  const std::size_t end = line.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return std::nullopt;
  const std::string name = line.substr(begin + kStart.size(), end - begin - kStart.size());
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return std::nullopt;
  const std::string job = JobKey("", name.substr(0, dot));
  if (job.empty()) return std::nullopt;
  return StepOfJob{.job = job, .step = name.substr(dot + 1)};
}

// The daemon's figures for this process; the last answer is kept. Thread-safe.
class EnergySource {
 public:
  // Called by slurmd for the node, by slurmstepd for its step.
  acct_gather_energy_t Read() {
    const std::lock_guard lock(mutex_);
    if (!known_) {
      known_ = true;
      step_ = StepOfThisProcess();
      // Where the SPANK plugin is in use the step is known already.
      if (step_) Note(BeginStep(socket_, *step_));
    }
    const auto now = Ask();
    last_.current_watts = now && now->watts ? Rounded(*now->watts) : NO_VAL;
    if (now) Advance(now->joules);
    last_.poll_time = std::time(nullptr);
    return last_;
  }

 private:
  static std::uint32_t Rounded(double value) {
    return static_cast<std::uint32_t>(std::lround(std::clamp(value, 0.0, 1e9)));
  }

  // The daemon counts from its own start, the node from that of slurmd.
  void Advance(double joules) {
    if (!began_) {
      began_ = std::time(nullptr);
      if (!step_) seen_ = joules;
    }
    total_ += std::max(0.0, joules >= seen_ ? joules - seen_ : joules);
    seen_ = joules;
    last_.previous_consumed_energy = last_.consumed_energy;
    last_.consumed_energy =
        std::max(last_.consumed_energy, static_cast<std::uint64_t>(total_ + 0.5));
    last_.base_consumed_energy = last_.consumed_energy - last_.previous_consumed_energy;
    const auto seconds = std::max<std::time_t>(1, std::time(nullptr) - *began_);
    last_.ave_watts = Rounded(total_ / static_cast<double>(seconds));
  }

  std::optional<EnergyNow> Ask() {
    if (Deadline::Clock::now() < silent_until_) return std::nullopt;
    std::string why;
    const std::string target = step_ ? "/v1/jobs/" + step_->job : "/v1/readings";
    const auto reply = AskDaemon(socket_, "GET", target, "", Deadline(kLongestAsk), why);
    if (!reply) {
      silent_until_ = Deadline::Clock::now() + kPauseAfterSilence;
      Note("no zeusd at " + socket_ + " (" + why + "): energies stand still");
      return std::nullopt;
    }
    if (reply->status != 200) return std::nullopt;
    return step_ ? OfStep(reply->body) : OfNode(reply->body);
  }

  std::optional<EnergyNow> OfStep(std::string_view body) const {
    const auto joules = FindJsonNumber(body, {"steps", step_->step, "energy_joules"});
    if (!joules) return std::nullopt;
    const auto cpu = FindJsonNumber(body, {"steps", step_->step, "cpu_energy_joules"});
    return EnergyNow{.joules = *joules + cpu.value_or(0),
                     .watts = FindJsonNumber(body, {"power_watts"})};
  }

  static std::optional<EnergyNow> OfNode(std::string_view body) {
    const auto devices = FindJson(body, {"devices"});
    if (!devices) return std::nullopt;
    EnergyNow now;
    double watts = 0;
    bool any = false;
    for (const std::string_view device : JsonElements(*devices)) {
      for (const std::string_view name : {"energy_joules", "dram_energy_joules"})
        if (const auto joules = FindJsonNumber(device, {name})) now.joules += *joules;
      for (const std::string_view name : {"power_watts", "dram_power_watts"})
        if (const auto power = FindJsonNumber(device, {name})) {
          watts += *power;
          any = true;
        }
    }
    if (any) now.watts = watts;
    return now;
  }

  // A trouble is told when it is new, not every second.
  void Note(const std::string& trouble) {
    if (!trouble.empty() && trouble != told_)
      slurm_info("acct_gather_energy/zeus: %s", trouble.c_str());
    if (!trouble.empty()) told_ = trouble;
  }

  std::mutex mutex_;
  const std::string socket_ = SocketPath();
  bool known_ = false;
  std::optional<StepOfJob> step_{};
  acct_gather_energy_t last_{};
  std::optional<std::time_t> began_{};
  double seen_ = 0;   // The daemon's latest figure.
  double total_ = 0;  // Since the first answer; for a step, since it began.
  Deadline::Clock::time_point silent_until_{};
  std::string told_{};
};

EnergySource& Source() {
  static EnergySource source;
  return source;
}

template <class Work>
int GuardedCall(Work work) {
  try {
    return work();
  } catch (...) {
    return SLURM_ERROR;
  }
}

int GetData(enum acct_energy_type type, void* data) {
  switch (type) {
    case ENERGY_DATA_JOULES_TASK:
    case ENERGY_DATA_NODE_ENERGY:
    case ENERGY_DATA_NODE_ENERGY_UP:
    case ENERGY_DATA_STRUCT:
      *static_cast<acct_gather_energy_t*>(data) = Source().Read();
      return SLURM_SUCCESS;
    case ENERGY_DATA_LAST_POLL:
      *static_cast<time_t*>(data) = std::time(nullptr);
      return SLURM_SUCCESS;
    case ENERGY_DATA_SENSOR_CNT:
      *static_cast<std::uint16_t*>(data) = 1;
      return SLURM_SUCCESS;
    default:
      return SLURM_ERROR;
  }
}

}  // namespace

// Names of callbacks are C's, so the namespace does not change them.
extern "C" {
#pragma GCC visibility push(default)

int init() { return SLURM_SUCCESS; }

int fini() { return SLURM_SUCCESS; }

int acct_gather_energy_p_update_node_energy() {
  return GuardedCall([] {
    (void)Source().Read();
    return SLURM_SUCCESS;
  });
}

int acct_gather_energy_p_get_data(enum acct_energy_type type, void* data) {
  return GuardedCall([&] { return GetData(type, data); });
}

// Slurm tells others' plugins here when to look and which step it is; zeusd knows both.
int acct_gather_energy_p_set_data(enum acct_energy_type /*type*/, void* /*data*/) {
  return SLURM_SUCCESS;
}

// There are no options in acct_gather.conf.
void acct_gather_energy_p_conf_options(void** /*options*/, int* /*count*/) {}
void acct_gather_energy_p_conf_set(int /*context*/, void* /*options*/) {}
void acct_gather_energy_p_conf_values(void* /*values*/) {}
#pragma GCC visibility pop
}

}  // namespace zeus::slurm
