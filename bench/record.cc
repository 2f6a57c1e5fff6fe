// Measures the cost of recording to a program: the same calls to the simulated driver, directly and
// through the library that records them, in turns. The spool is collected meanwhile, as zeus record
// does.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/device/nvml/nvml_readers.h"
#include "zeus/device/nvml/nvml_session.h"
#include "zeus/recording/spool.h"

namespace zeus {
namespace {

constexpr int kRounds = 15;
constexpr int kCalls = 20'000;
constexpr double kNanosecondsPerSecond = 1e9;

struct Driver {
  nvml::NvmlApi api;
  nvml::Device device = nullptr;
  std::vector<double> costs{};  // Nanoseconds of a call, by round.
};

Result<Driver> Open(const std::filesystem::path& library) {
  ZEUS_TRY(const nvml::NvmlApi api, nvml::LoadNvml(library.string()));
  Driver driver{.api = api};
  if (api.init() != nvml::kSuccess || api.get_handle_by_index(0, &driver.device) != nvml::kSuccess)
    return Error{ErrorCode::kUnavailable, library.string() + " has no GPU"};
  return driver;
}

void MeasureRound(Clock& clock, Driver& driver) {
  unsigned long long energy = 0;
  const TimePoint begin = clock.Now();
  for (int call = 0; call < kCalls; ++call) driver.api.get_total_energy(driver.device, &energy);
  driver.costs.push_back((clock.Now() - begin).count() / kCalls * kNanosecondsPerSecond);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Result<int> Run() {
  const auto root = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const auto simulated = root / "lib/zeus/sim/libnvidia-ml.so.1";
  const auto spool = std::filesystem::temp_directory_path() / fmt::format("spool-{}", ::getpid());
  // Nothing else runs yet. A folder without nodes makes the driver simulate a private one.
  ::setenv("ZEUS_SIM_DIR", root.c_str(), 1);                   // NOLINT(concurrency-mt-unsafe)
  ::setenv("ZEUS_SIM", "1xV100", 1);                           // NOLINT(concurrency-mt-unsafe)
  ::setenv(recording::kDriverVariable, simulated.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  ::setenv(recording::kSpoolVariable, spool.c_str(), 1);       // NOLINT(concurrency-mt-unsafe)
  SystemClock clock;
  ZEUS_TRY(const auto reader, recording::SpoolReader::Create(spool));
  ZEUS_TRY(Driver direct, Open(simulated));
  ZEUS_TRY(Driver recorded, Open(root / "lib/zeus/recorder/libnvidia-ml.so.1"));
  std::size_t bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    MeasureRound(clock, direct);
    MeasureRound(clock, recorded);
    for (const recording::Collected& part : reader->Collect()) bytes += part.calls.size();
  }
  const double one = Median(direct.costs);
  const double other = Median(recorded.costs);
  fmt::print("a call of the simulated driver: {:.0f} ns, recorded {:.0f} ns: {:.0f} ns more\n", one,
             other, other - one);
  fmt::print("a recorded call: {:.1f} bytes before compression\n",
             static_cast<double>(bytes) / (kRounds * kCalls));
  fmt::print("a program that makes 100 calls a second spends {:.4f} % of a processor on it\n",
             (other - one) * 100 / kNanosecondsPerSecond * 100);
  return 0;
}

}  // namespace
}  // namespace zeus

int main() {
  const auto code = zeus::Run();
  if (code.ok()) return code.value();
  fmt::print(stderr, "record: {}: build nvml_simulator and nvml_recorder\n", code.error().message);
  return 1;
}
