// Measures what a program pays for readings that the node daemon's recorder takes: a look at the
// board, and windows whose monitor follows it. Eight GPUs of 300 W, updated by a thread as often as
// those of real boards.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"
#include "zeus/client/node/board_reader.h"
#include "zeus/daemon/board.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

class FollowedMeter final : public EnergyMeter {
 public:
  FollowedMeter(std::shared_ptr<client::BoardReader> reader, std::string name)
      : reader_(std::move(reader)), name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override { std::abort(); }  // No driver call is made.
  Result<Watts> Power() override { std::abort(); }
  std::shared_ptr<ReadingFeed> Follow() override { return reader_->Follow(name_); }

 private:
  const std::shared_ptr<client::BoardReader> reader_;
  const std::string name_;
};

// A counter of 300 W that costs nothing to read.
class FreeMeter final : public EnergyMeter {
 public:
  FreeMeter(Clock& clock, std::string name) : clock_(clock), name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override {
    const double updates = std::floor(clock_.Now().time_since_epoch() / 20ms);
    return EnergyReading{.total = Joules(6 * updates), .epoch = 0, .taken_at = std::nullopt};
  }
  Result<Watts> Power() override { return Watts(300); }

 private:
  Clock& clock_;
  const std::string name_;
};

// A daemon's board and the thread that feeds it.
class Daemon {
 public:
  static constexpr int kGpus = 8;

  Daemon() {
    for (unsigned i = 0; i < kGpus; ++i)
      node_.gpus.push_back(std::make_unique<sim::SimulatedGpu>(
          clock_, *sim::FindGpuModel("A100").value(), sim::SimulatedGpu::Options{.index = i}));
    boards_ = daemon::NodeBoards::Create(node_, {.generation = 1}).value();
    const std::string path =
        std::filesystem::temp_directory_path() / fmt::format("zeus-board-{}", ::getpid());
    server_ = daemon::BoardServer::Start(daemon::BoardServer::Listen(path).value(), *boards_,
                                         [](int, wire::BoardKind) { return true; })
                  .value();
    reader_ = client::BoardReader::Connect(path).value();
    std::filesystem::remove(path);
    recorder_ = std::make_unique<Ticker>("recorder", [this] {
      const TimePoint now = clock_.Now();
      for (int i = 0; i < kGpus; ++i)
        boards_->Record(fmt::format("gpu:{}", i), now,
                        {.energy = EnergyReading{.total = kPower * now.time_since_epoch(),
                                                 .epoch = 0,
                                                 .taken_at = std::nullopt},
                         .power = kPower});
      return now + 20ms;
    });
    clock_.SleepFor(200ms);
  }

  SystemClock& clock() { return clock_; }
  const std::shared_ptr<client::BoardReader>& reader() { return reader_; }

 private:
  static constexpr Watts kPower{300};
  SystemClock clock_;
  Node node_;
  std::unique_ptr<daemon::NodeBoards> boards_;
  std::unique_ptr<daemon::BoardServer> server_;
  std::shared_ptr<client::BoardReader> reader_;
  std::unique_ptr<Ticker> recorder_;
};

void BM_NewestReadingOfEightGpus(benchmark::State& state) {
  Daemon daemon;
  const auto boards = daemon.reader()->boards();
  std::vector<client::DeviceView> gpus;
  for (int i = 0; i < Daemon::kGpus; ++i) gpus.push_back(*boards->Find(fmt::format("gpu:{}", i)));
  for (auto _ : state)
    for (const client::DeviceView& gpu : gpus) benchmark::DoNotOptimize(gpu.Newest());
}
BENCHMARK(BM_NewestReadingOfEightGpus);

void BM_NewestWordsOfEightGpus(benchmark::State& state) {
  Daemon daemon;
  const auto boards = daemon.reader()->boards();
  std::vector<client::DeviceView> gpus;
  for (int i = 0; i < Daemon::kGpus; ++i) gpus.push_back(*boards->Find(fmt::format("gpu:{}", i)));
  for (auto _ : state)
    for (const client::DeviceView& gpu : gpus) benchmark::DoNotOptimize(gpu.NewestWords());
}
BENCHMARK(BM_NewestWordsOfEightGpus);

// The peer of the next one: a recorder thread in the program, and a driver that costs nothing.
void BM_WindowOfARecorder(benchmark::State& state) {
  SystemClock clock;
  std::vector<std::unique_ptr<FreeMeter>> meters;
  std::vector<MonitoredDevice> devices;
  for (int i = 0; i < Daemon::kGpus; ++i) {
    meters.push_back(std::make_unique<FreeMeter>(clock, fmt::format("gpu:{}", i)));
    devices.push_back({.meter = meters.back().get()});
  }
  EnergyMonitor monitor(clock, std::move(devices));
  const Ticker ticker("zeus-recorder", [&] { return monitor.Step(); });
  clock.SleepFor(500ms);
  for (auto _ : state) {
    benchmark::DoNotOptimize(monitor.BeginWindow("step"));
    benchmark::DoNotOptimize(monitor.EndWindow("step"));
  }
}
BENCHMARK(BM_WindowOfARecorder);

void BM_WindowThroughTheBoard(benchmark::State& state) {
  Daemon daemon;
  std::vector<std::unique_ptr<FollowedMeter>> meters;
  std::vector<MonitoredDevice> devices;
  for (int i = 0; i < Daemon::kGpus; ++i) {
    meters.push_back(std::make_unique<FollowedMeter>(daemon.reader(), fmt::format("gpu:{}", i)));
    devices.push_back({.meter = meters.back().get()});
  }
  EnergyMonitor monitor(daemon.clock(), std::move(devices));
  daemon.clock().SleepFor(500ms);
  for (auto _ : state) {
    benchmark::DoNotOptimize(monitor.BeginWindow("step"));
    benchmark::DoNotOptimize(monitor.EndWindow("step"));
  }
}
BENCHMARK(BM_WindowThroughTheBoard);

}  // namespace
}  // namespace zeus
