#include "zeus/device/rapl/perf_power.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/device/rapl/rapl_text.h"

namespace zeus::rapl {
namespace {

Result<PowerPmu::Event> ReadEvent(const std::filesystem::path& pmu, const std::string& name) {
  const auto path = pmu / "events" / name;
  ZEUS_TRY(const std::string description, ReadLine(path));
  ZEUS_TRY(const std::string scale_text, ReadLine(path.string() + ".scale"));
  const auto unit = ReadLine(path.string() + ".unit");
  if (unit.ok() && unit.value() != "Joules")
    return Error{ErrorCode::kNotSupported, path.string() + ": does not count joules"};
  auto config = ParseEventConfig(description);
  if (!config.ok()) return std::move(config).error().While(path.string());
  auto scale = ParseEventScale(scale_text);
  if (!scale.ok()) return std::move(scale).error().While(path.string() + ".scale");
  return PowerPmu::Event{.config = config.value(), .joules_per_count = scale.value()};
}

}  // namespace

PerfApi SystemPerfApi() {
  return {.open =
              [](std::uint32_t type, std::uint64_t config, int cpu) {
                perf_event_attr attributes{};
                attributes.type = type;
                attributes.size = sizeof(attributes);
                attributes.config = config;
                constexpr int kEveryProcess = -1;
                constexpr int kNoGroup = -1;
                const long descriptor = ::syscall(SYS_perf_event_open, &attributes, kEveryProcess,
                                                  cpu, kNoGroup, PERF_FLAG_FD_CLOEXEC);
                return descriptor < 0 ? -errno : static_cast<int>(descriptor);
              },
          .read =
              [](int descriptor, std::uint64_t& count) {
                const ssize_t got = ::read(descriptor, &count, sizeof(count));
                if (got < 0) return errno;
                return got == sizeof(count) ? 0 : ENODATA;
              },
          .close = [](int descriptor) { ::close(descriptor); }};
}

Result<PowerPmu> ReadPowerPmu(const std::filesystem::path& sysfs) {
  const auto directory = sysfs / "bus/event_source/devices/power";
  PowerPmu pmu;
  ZEUS_TRY(const std::uint64_t type, ReadUnsigned(directory / "type"));
  pmu.type = static_cast<std::uint32_t>(type);
  ZEUS_TRY(const std::string cpumask, ReadLine(directory / "cpumask"));
  auto cpus = ParseCpuList(cpumask);
  if (!cpus.ok()) return std::move(cpus).error().While((directory / "cpumask").string());
  pmu.cpus = std::move(cpus).value();

  auto package = ReadEvent(directory, "energy-pkg");
  if (!package.ok()) return std::move(package).error();
  pmu.package = package.value();
  // Client and AMD CPUs do not count their memory.
  if (auto memory = ReadEvent(directory, "energy-ram"); memory.ok()) pmu.memory = memory.value();
  return pmu;
}

Result<std::unique_ptr<PerfCounter>> PerfCounter::Open(const PerfApi& api, const PowerPmu& pmu,
                                                       const PowerPmu::Event& event,
                                                       const std::vector<int>& cpus) {
  std::unique_ptr<PerfCounter> counter(new PerfCounter(api, event.joules_per_count));
  for (const int cpu : cpus) {
    const int descriptor = api.open(pmu.type, event.config, cpu);
    if (descriptor < 0)
      return FileError(fmt::format("perf_event_open(power, cpu {})", cpu), -descriptor);
    counter->events_.push_back({.cpu = cpu, .descriptor = descriptor});
  }
  // The first count is the origin, and tells at discovery whether reading works.
  ZEUS_TRY([[maybe_unused]] const EnergyReading origin, counter->Read());
  return counter;
}

PerfCounter::~PerfCounter() {
  for (const OpenEvent& event : events_) api_.close(event.descriptor);
}

Result<EnergyReading> PerfCounter::Read() {
  const std::lock_guard lock(mutex_);
  for (OpenEvent& event : events_) {
    std::uint64_t count = 0;
    if (const int error = api_.read(event.descriptor, count); error != 0)
      return FileError(fmt::format("perf power counter of cpu {}", event.cpu), error);
    // In two's complement the difference is right across the end of 64 bits too (months away); a
    // negative one means that the counter started again.
    const auto growth = static_cast<std::int64_t>(count - event.last);
    event.last = count;
    if (growth < 0) {
      ++total_.epoch;
    } else {
      total_.total += Joules(static_cast<double>(growth) * joules_per_count_);
    }
  }
  return total_;
}

}  // namespace zeus::rapl
