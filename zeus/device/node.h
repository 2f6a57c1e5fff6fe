#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/energy_meter.h"
#include "zeus/device/gpu.h"

namespace zeus {

// Something that was looked for and is not there, or not usable.
struct Absence {
  std::string what;        // "NVIDIA GPUs", "CPU energy (powercap)"
  std::string reason;      // "libnvidia-ml.so.1 not found"
  std::string fix;         // The command or step that changes it; empty if there is none.
  bool timed_out = false;  // The driver did not answer within Surroundings::answer_within.
};

// The devices that one vendor interface found.
struct Findings {
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::vector<std::unique_ptr<CpuPackage>> cpus;
  std::vector<std::unique_ptr<PowerRail>> rails;
  std::vector<Absence> absent;

  // GPUs that have a number and are lost: they are in `absent` by that name, and no other GPU may
  // have it.
  unsigned lost_gpus = 0;
};

// The devices of this machine that this process may use, and the reason for everything absent.
// GPUs are in the order in which the vendor's runtime numbers them for this process.
using Node = Findings;

// Where to look. The roots are parameters so that tests can point them at fixture trees.
struct Surroundings {
  Clock& clock;
  std::filesystem::path sysfs = "/sys";
  std::filesystem::path procfs = "/proc";
  std::filesystem::path dev = "/dev";

  // The first GPU found is called "gpu:<this>".
  unsigned first_gpu_index = 0;

  // Reads an environment variable; std::getenv in production.
  std::function<std::optional<std::string>(const std::string&)> environment;

  // How long a vendor's driver may take to tell of its GPUs. A GPU that has not answered by then is
  // absent with that reason, and a driver of which nothing is heard has no GPUs. Without a value,
  // as long as it takes. Only NVML is asked in this way: the others are files of the kernel.
  std::optional<Seconds> answer_within{};
};

// Surroundings of the running process.
Surroundings RealSurroundings(Clock& clock);

// kInvalidArgument when an environment variable (CUDA_VISIBLE_DEVICES, …) has a value that means
// nothing here; the message quotes it. Absent hardware is not an error: see Node::absent.
Result<Node> Discover(const Surroundings& surroundings);

}  // namespace zeus
