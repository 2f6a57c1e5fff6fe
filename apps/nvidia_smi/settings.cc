#include "apps/nvidia_smi/settings.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "apps/nvidia_smi/fields.h"
#include "zeus/base/text.h"

namespace zeus::nvidia_smi {
namespace {

int Stop(int code) {
  fmt::print("Terminating early due to previous errors.\n");
  return code;
}

// Calls `set` for each GPU; `what` is for the sentence about a refusal, `done` for success.
template <class Set, class Done>
int ForEach(const std::vector<Gpu>& gpus, std::string_view what, Set&& set, Done&& done) {
  for (const Gpu& gpu : gpus) {
    const Return code = set(gpu);
    if (code != nvml::kSuccess) {
      fmt::print("Unable to {} for GPU {}: {}\n", what, gpu.bus_id(), gpu.driver->Explain(code));
      return Stop(code);
    }
    fmt::print("{}\n", done(gpu));
  }
  fmt::print("All done.\n");
  return 0;
}

int RefuseValue(std::string_view option, std::string_view value, std::string_view example) {
  fmt::print("Option {} does not understand \"{}\": give it for example {}\n", option, value,
             example);
  return kExitInvalid;
}

std::optional<unsigned> WholeNumber(std::string_view text) {
  constexpr std::uint64_t kMost = 1'000'000;
  const auto number = ParseUnsigned(Trim(text));
  if (!number.ok() || number.value() > kMost) return std::nullopt;
  return static_cast<unsigned>(number.value());
}

// "900" or "900,1200".
std::optional<std::pair<unsigned, unsigned>> Range(std::string_view text) {
  const auto parts = SplitAtCommas(text);
  const auto first = WholeNumber(parts.front());
  const auto last = WholeNumber(parts.back());
  if (parts.size() > 2 || !first || !last) return std::nullopt;
  return std::pair(*first, *last);
}

int Lock(const std::vector<Gpu>& gpus, std::string_view option, std::string_view text,
         const char* function) {
  const auto range = Range(text);
  if (!range) return RefuseValue(option, text, "900,1200");
  const bool memory = option == "-lmc";
  return ForEach(
      gpus, memory ? "lock the memory clocks" : "lock the GPU clocks",
      [&](const Gpu& gpu) {
        return gpu.driver->Call(function, gpu.device, range->first, range->second);
      },
      [&](const Gpu& gpu) {
        return fmt::format("{0} clocks set to \"({1}ClkMin {2}, {1}ClkMax {3})\" for GPU {4}",
                           memory ? "Memory" : "GPU", memory ? "mem" : "gpu", range->first,
                           range->second, gpu.bus_id());
      });
}

int Reset(const std::vector<Gpu>& gpus, std::string_view what, const char* function) {
  return ForEach(
      gpus, fmt::format("reset the {}", what),
      [&](const Gpu& gpu) { return gpu.driver->Call(function, gpu.device); },
      [&](const Gpu& gpu) {
        return fmt::format("All done resetting the {} for GPU {}.", what, gpu.bus_id());
      });
}

}  // namespace

int SetPowerLimit(const std::vector<Gpu>& gpus, std::string_view text) {
  const auto watts = ParseDouble(Trim(text));
  if (!watts.ok() || !(watts.value() > 0 && watts.value() < 1e6))
    return RefuseValue("-pl", text, "200");
  const auto milliwatts = static_cast<unsigned>(std::lround(watts.value() * 1000));
  for (const Gpu& gpu : gpus) {
    const std::string before = ReadField(gpu, "power.limit", "unknown");
    const Return code =
        gpu.driver->Call("nvmlDeviceSetPowerManagementLimit", gpu.device, milliwatts);
    if (code == nvml::kInvalidArgument) {
      fmt::print(
          "Provided power limit {:.2f} W is not a valid power limit which should be between "
          "{} and {} for GPU {}\n",
          watts.value(), ReadField(gpu, "power.min_limit", "unknown"),
          ReadField(gpu, "power.max_limit", "unknown"), gpu.bus_id());
      return Stop(code);
    }
    if (code != nvml::kSuccess) {
      fmt::print("Unable to set the power limit for GPU {}: {}\n", gpu.bus_id(),
                 gpu.driver->Explain(code));
      return Stop(code);
    }
    fmt::print("Power limit for GPU {} was set to {:.2f} W from {}.\n", gpu.bus_id(), watts.value(),
               before);
  }
  fmt::print("All done.\n");
  return 0;
}

int LockGraphicsClocks(const std::vector<Gpu>& gpus, std::string_view range) {
  return Lock(gpus, "-lgc", range, "nvmlDeviceSetGpuLockedClocks");
}

int LockMemoryClocks(const std::vector<Gpu>& gpus, std::string_view range) {
  return Lock(gpus, "-lmc", range, "nvmlDeviceSetMemoryLockedClocks");
}

int ResetGraphicsClocks(const std::vector<Gpu>& gpus) {
  return Reset(gpus, "GPU clocks", "nvmlDeviceResetGpuLockedClocks");
}

int ResetMemoryClocks(const std::vector<Gpu>& gpus) {
  return Reset(gpus, "memory clocks", "nvmlDeviceResetMemoryLockedClocks");
}

int SetApplicationsClocks(const std::vector<Gpu>& gpus, std::string_view text) {
  const auto clocks = Range(text);
  if (!clocks || SplitAtCommas(text).size() != 2) return RefuseValue("-ac", text, "1215,900");
  return ForEach(
      gpus, "set the applications clocks",
      [&](const Gpu& gpu) {
        return gpu.driver->Call("nvmlDeviceSetApplicationsClocks", gpu.device, clocks->first,
                                clocks->second);
      },
      [&](const Gpu& gpu) {
        return fmt::format("Applications clocks set to \"(MEM {}, SM {})\" for GPU {}",
                           clocks->first, clocks->second, gpu.bus_id());
      });
}

int ResetApplicationsClocks(const std::vector<Gpu>& gpus) {
  return Reset(gpus, "applications clocks", "nvmlDeviceResetApplicationsClocks");
}

int SetPersistenceMode(const std::vector<Gpu>& gpus, std::string_view text) {
  const bool on = text == "1" || text == "ENABLED";
  if (!on && text != "0" && text != "DISABLED") return RefuseValue("-pm", text, "1");
  return ForEach(
      gpus, "set the persistence mode",
      [&](const Gpu& gpu) {
        return gpu.driver->Call("nvmlDeviceSetPersistenceMode", gpu.device, on ? 1 : 0);
      },
      [&](const Gpu& gpu) {
        return fmt::format("{} persistence mode for GPU {}.", on ? "Enabled" : "Disabled",
                           gpu.bus_id());
      });
}

}  // namespace zeus::nvidia_smi
