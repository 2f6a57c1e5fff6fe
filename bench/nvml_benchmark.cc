// Measures the cost of reading all values of a GPU through NVML. Over a driver that costs nothing
// the result is the adapter's own share. Over a driver library it is the total, and the driver's
// share is measured separately by the same calls without the adapter. The library is the simulated
// one with a private node of 8 V100s, unless ZEUS_NVML_LIBRARY names another.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/device/nvml/nvml_gpu.h"
#include "zeus/device/nvml/nvml_readers.h"
#include "zeus/device/nvml/nvml_session.h"

namespace zeus::nvml {
namespace {

constexpr unsigned kGpus = 8;

Return FreeFieldValues(Device /*device*/, int count, FieldValue* fields) {
  for (int i = 0; i < count; ++i) {
    fields[i].timestamp = 1;
    fields[i].value_type = kValueUnsignedLongLong;
    fields[i].nvml_return = kSuccess;
    fields[i].value.as_unsigned_long_long = 150'000;
  }
  return kSuccess;
}

// Makes a driver that answers every call at once with constants.
NvmlApi FreeDriver() {
  NvmlApi api;
  api.init = [] { return kSuccess; };
  api.shutdown = [] { return kSuccess; };
  api.get_count = [](unsigned* count) {
    *count = kGpus;
    return kSuccess;
  };
  api.get_handle_by_index = [](unsigned, Device* device) {
    *device = nullptr;
    return kSuccess;
  };
  api.get_uuid = [](Device, char* text, unsigned) {
    *text = '\0';
    return kSuccess;
  };
  api.get_field_values = FreeFieldValues;
  api.get_temperature_v = [](Device, TemperatureV1*) { return kSuccess; };
  api.get_utilization = [](Device, UtilizationRates*) { return kSuccess; };
  api.get_memory_info_v2 = [](Device, MemoryInfoV2*) { return kSuccess; };
  api.get_clock_info = [](Device, int, unsigned*) { return kSuccess; };
  api.get_clocks_event_reasons = [](Device, unsigned long long*) { return kSuccess; };
  return api;
}

std::vector<Device> FirstDevices(const NvmlApi& api) {
  unsigned count = 0;
  Call(api.get_count, &count);
  std::vector<Device> devices(std::min(count, kGpus));
  for (unsigned i = 0; i < devices.size(); ++i) Call(api.get_handle_by_index, i, &devices[i]);
  return devices;
}

void ReportPerGpu(benchmark::State& state, std::size_t gpus) {
  state.counters["gpus"] = static_cast<double>(gpus);
  state.counters["time_per_gpu"] =
      benchmark::Counter(static_cast<double>(gpus), benchmark::Counter::kIsIterationInvariantRate |
                                                        benchmark::Counter::kInvert);
}

// Measures the total of the driver's work and ours.
void ReadAll(benchmark::State& state, const NvmlApi& api) {
  auto session = NvmlSession::Open(api);
  if (!session.ok()) return state.SkipWithError(session.error().message.c_str());
  std::vector<std::unique_ptr<NvmlGpu>> gpus;
  for (const Device device : FirstDevices(api)) {
    auto gpu = NvmlGpu::Open(session.value(), device, "gpu");
    if (!gpu.ok()) return state.SkipWithError(gpu.error().message.c_str());
    gpus.push_back(std::move(gpu).value());
  }
  for (auto _ : state) {
    for (const auto& gpu : gpus) benchmark::DoNotOptimize(gpu->Read());
  }
  ReportPerGpu(state, gpus.size());
}

// Requests those fields that the board supports.
std::vector<FieldValue> KnownFields(const Target& target) {
  constexpr std::array kWanted = {std::pair{kFieldEnergy, kScopeGpu},
                                  std::pair{kFieldPowerInstant, kScopeGpu},
                                  std::pair{kFieldPowerAverage, kScopeGpu},
                                  std::pair{kFieldPowerAverage, kScopeMemory},
                                  std::pair{kFieldPowerCurrentLimit, kScopeGpu},
                                  std::pair{kFieldPowerRequestedLimit, kScopeGpu}};
  std::vector<FieldValue> request;
  for (const auto& [id, scope] : kWanted) {
    FieldValue field{};
    if (ReadField(target, id, scope, &field) == kSuccess) request.push_back(field);
  }
  return request;
}

template <class T>
void CallOnce(Return (*way)(const Target&, T*), const Target& target) {
  T value{};
  benchmark::DoNotOptimize(way(target, &value));
}

// Measures the driver's share: the calls of one reading, whose results are discarded.
void CallDriver(benchmark::State& state, const NvmlApi& api) {
  auto session = NvmlSession::Open(api);
  if (!session.ok()) return state.SkipWithError(session.error().message.c_str());
  const std::vector<Device> devices = FirstDevices(api);
  if (devices.empty()) return state.SkipWithError("no GPU");
  auto fields = KnownFields({.api = api, .device = devices.front()});
  for (auto _ : state) {
    for (const Device device : devices) {
      const Target target{.api = api, .device = device};
      Call(api.get_field_values, device, static_cast<int>(fields.size()), fields.data());
      CallOnce(ReadTemperatureV, target);
      CallOnce(ReadUtilization, target);
      CallOnce(ReadMemoryV2, target);
      CallOnce(ReadGraphicsClock, target);
      CallOnce(ReadMemoryClock, target);
      CallOnce(ReadThrottleReasons, target);
    }
  }
  ReportPerGpu(state, devices.size());
}

void ReadAllOverAFreeDriver(benchmark::State& state) { ReadAll(state, FreeDriver()); }
BENCHMARK(ReadAllOverAFreeDriver);

void ReadEnergyOverAFreeDriver(benchmark::State& state) {
  auto session = NvmlSession::Open(FreeDriver());
  auto gpu = NvmlGpu::Open(session.value(), nullptr, "gpu:0");
  for (auto _ : state) benchmark::DoNotOptimize(gpu.value()->Energy());
  ReportPerGpu(state, 1);
}
BENCHMARK(ReadEnergyOverAFreeDriver);

constexpr const char* kLibraryVariable = "ZEUS_NVML_LIBRARY";

// Selects the library that was built with this program. ZEUS_SIM_DIR points to a folder without
// nodes, so the library simulates a private node instead of one that a user started.
std::string UseSimulatedLibrary() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  ::setenv("ZEUS_SIM_DIR", program.parent_path().c_str(), 1);      // NOLINT(concurrency-mt-unsafe)
  ::setenv("ZEUS_SIM", fmt::format("{}xV100", kGpus).c_str(), 0);  // NOLINT(concurrency-mt-unsafe)
  return program.parent_path().parent_path() / "lib/zeus/sim/libnvidia-ml.so.1";
}

int Main(int argc, char** argv) {
  // Nothing else runs yet. NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* chosen = std::getenv(kLibraryVariable);
  const std::string library = chosen == nullptr ? UseSimulatedLibrary() : chosen;
  const auto api = LoadNvml(library);
  if (!api.ok()) {
    fmt::print(stderr, "nvml_benchmark: {}: build nvml_simulator, or correct {}\n",
               api.error().message, kLibraryVariable);
    return 1;
  }
  benchmark::RegisterBenchmark("ReadAllOverTheLibrary", ReadAll, api.value());
  benchmark::RegisterBenchmark("DriverShareOfTheLibrary", CallDriver, api.value());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace zeus::nvml

int main(int argc, char** argv) { return zeus::nvml::Main(argc, argv); }
