#include "zeus/daemon/board.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/client/node/board_reader.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/measurement_json.h"
#include "zeus/monitor/testing/scripted_meter.h"

// The daemon's boards and the programs that follow them.
namespace zeus::client {
namespace board_test {

using namespace std::chrono_literals;
using namespace zeus::literals;
using daemon::BoardServer;
using daemon::NodeBoards;
using sim::SimulatedGpu;
using zeus::testing::RecordUntil;
using zeus::testing::ScriptedMeter;
using zeus::testing::TemporaryDirectory;

constexpr TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

DeviceReading Reading(double joules, double watts) {
  return {.energy = EnergyReading{.total = Joules(joules), .epoch = 0, .taken_at = std::nullopt},
          .power = Watts(watts)};
}

// A device of the board. It fails the test when somebody asks the driver.
class FollowedMeter final : public EnergyMeter {
 public:
  FollowedMeter(std::shared_ptr<BoardReader> reader, std::string name)
      : reader_(std::move(reader)), name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override {
    ADD_FAILURE() << "the driver was asked for energy";
    return Error{ErrorCode::kInternal, "asked"};
  }
  Result<Watts> Power() override {
    ADD_FAILURE() << "the driver was asked for power";
    return Error{ErrorCode::kInternal, "asked"};
  }
  std::shared_ptr<ReadingFeed> Follow() override { return reader_->Follow(name_); }

 private:
  const std::shared_ptr<BoardReader> reader_;
  const std::string name_;
};

class BoardReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    node_.gpus.push_back(
        std::make_unique<SimulatedGpu>(clock_, *sim::FindGpuModel("A100").value()));
    StartDaemon(1);
  }

  void StartDaemon(std::uint64_t generation) {
    server_.reset();
    boards_ = NodeBoards::Create(node_, {.generation = generation}).value();
    server_ = BoardServer::Start(BoardServer::Listen(path_).value(), *boards_,
                                 [this](int, wire::BoardKind) { return admits_.load(); })
                  .value();
  }

  SimulatedGpu& gpu() { return static_cast<SimulatedGpu&>(*node_.gpus[0]); }
  // A monitor that reads the GPU and shows what it reads on the board.
  std::unique_ptr<EnergyMonitor> Recorder(SensorProfile sensor) {
    EnergyMonitor::Options options;
    options.recorded = [this](const std::string& device, TimePoint time,
                              const DeviceReading& reading) {
      boards_->Record(device, time, reading);
    };
    return std::make_unique<EnergyMonitor>(
        clock_, std::vector<MonitoredDevice>{{.meter = &gpu(), .gpu = &gpu(), .sensor = sensor}},
        std::move(options));
  }

  TemporaryDirectory folder_;
  const std::string path_ = folder_.path() / "board.sock";
  VirtualClock clock_;
  Node node_;
  std::atomic<bool> admits_{true};
  std::unique_ptr<NodeBoards> boards_;
  std::unique_ptr<BoardServer> server_;
};

// All but the label of the time of day, which each monitor reads for itself.
std::string Text(const Measurement& measurement) {
  Json json = ToJson(measurement);
  json.erase("start_time_seconds");
  return JsonText(json);
}

TEST_F(BoardReaderTest, WindowsThroughTheBoardAreThoseOfTheRecorderToTheBit) {
  SensorProfile sensor = PriorProfile(gpu().identity());
  sensor.gain_sigma = 0.013;
  sensor.offset = Watts(1.7);
  const auto recorder = Recorder(sensor);
  FollowedMeter meter(BoardReader::Connect(path_).value(), "gpu:0");
  EnergyMonitor client(clock_, {{.meter = &meter, .sensor = sensor}});
  std::vector<std::pair<WindowId, WindowId>> ids;
  double time = 0;
  for (int i = 0; i < 40; ++i) {
    const auto load = gpu().AttachLoad({.demand = Watts(90 + 37.0 * (i % 5))});
    RecordUntil(clock_, *recorder, At(time += 0.37));
    const auto ours = recorder->BeginWindow("step");
    const auto theirs = client.BeginWindow("step");
    RecordUntil(clock_, *recorder, At(time += 0.05 * (i % 13) + 0.011));
    gpu().DetachLoad(load.value());
    if (i == 20) {
      ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
    }
    const auto expected = recorder->EndWindow("step");
    const auto measured = client.EndWindow("step");
    ASSERT_TRUE(expected.ok() && measured.ok());
    EXPECT_EQ(Text(measured.value()), Text(expected.value()));
    const auto& energy = measured.value().devices[0].energy;
    EXPECT_EQ(energy.ok(), expected.value().devices[0].energy.ok());
    if (energy.ok()) {
      EXPECT_EQ(energy.value().sigma, expected.value().devices[0].energy.value().sigma);
    }
    ids.emplace_back(ours.value(), theirs.value());
  }
  RecordUntil(clock_, *recorder, At(time += 2));
  for (const auto& [ours, theirs] : ids) {
    const auto expected = recorder->RefinedResult(ours);
    const auto measured = client.RefinedResult(theirs);
    ASSERT_TRUE(expected.ok() && measured.ok());
    EXPECT_EQ(Text(measured.value()), Text(expected.value()));
    EXPECT_GT(measured.value().Sum().energy.value(), 0);
  }
}

TEST_F(BoardReaderTest, AClientThatComesLaterMeasuresTheSame) {
  const SensorProfile sensor = PriorProfile(gpu().identity());
  const auto recorder = Recorder(sensor);
  RecordUntil(clock_, *recorder, At(30));
  FollowedMeter meter(BoardReader::Connect(path_).value(), "gpu:0");
  EnergyMonitor client(clock_, {{.meter = &meter, .sensor = sensor}});
  const auto ours = recorder->BeginWindow("step").value();
  const auto theirs = client.BeginWindow("step").value();
  RecordUntil(clock_, *recorder, At(40));
  ASSERT_TRUE(recorder->EndWindow("step").ok() && client.EndWindow("step").ok());
  RecordUntil(clock_, *recorder, At(42));
  const auto expected = recorder->RefinedResult(ours);
  const auto measured = client.RefinedResult(theirs);
  ASSERT_TRUE(expected.ok() && measured.ok());
  EXPECT_NEAR(measured.value().Sum().energy.value(), expected.value().Sum().energy.value(), 1e-6);
  EXPECT_NEAR(measured.value().Sum().sigma.value(), expected.value().Sum().sigma.value(), 1e-3);
}

TEST_F(BoardReaderTest, TelemetryTravelsWithTheReadings) {
  const auto recorder = Recorder(PriorProfile(gpu().identity()));
  FollowedMeter meter(BoardReader::Connect(path_).value(), "gpu:0");
  EnergyMonitor client(clock_, {{.meter = &meter}});
  RecordUntil(clock_, *recorder, At(3));
  const auto expected = recorder->Now(0);
  const auto present = client.Now(0);
  ASSERT_TRUE(present.temperature.ok() && present.enforced_limit.ok() && present.utilization.ok());
  EXPECT_EQ(present.temperature.value(), expected.temperature.value());
  EXPECT_EQ(present.enforced_limit.value(), expected.enforced_limit.value());
  EXPECT_EQ(present.graphics_clock.value(), expected.graphics_clock.value());
}

TEST_F(BoardReaderTest, AReaderThatWasOvertakenNoticesIt) {
  const auto reader = BoardReader::Connect(path_).value();
  const auto feed = reader->Follow("gpu:0");
  boards_->Record("gpu:0", At(1), Reading(100, 100));
  const auto first = feed->Next(At(10000));
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->after_gap);
  for (int i = 2; i < 6000; ++i) boards_->Record("gpu:0", At(i), Reading(100.0 * i, 100));

  const auto next = feed->Next(At(10000));

  ASSERT_TRUE(next);
  EXPECT_TRUE(next->after_gap);
  EXPECT_GT(next->time, At(6000 - 4096));
  const auto after = feed->Next(At(10000));
  ASSERT_TRUE(after);
  EXPECT_FALSE(after->after_gap);
  EXPECT_EQ(after->time - next->time, 1s);
}

TEST_F(BoardReaderTest, AWindowOverLostReadingsOfACounterHasItsEnergy) {
  FollowedMeter meter(BoardReader::Connect(path_).value(), "gpu:0");
  SensorProfile sensor;
  sensor.counter_period = Seconds(0.1);
  EnergyMonitor client(clock_, {{.meter = &meter, .sensor = sensor}});
  const auto record_until = [&](double seconds) {
    while (clock_.Now() < At(seconds)) {
      clock_.Advance(100ms);
      const double elapsed = clock_.Now().time_since_epoch().count();
      boards_->Record("gpu:0", clock_.Now(), Reading(250 * elapsed, 250));
    }
  };
  record_until(10);
  ASSERT_TRUE(client.BeginWindow("epoch").ok());
  record_until(1000);  // Twice the length of the ring.
  const auto measured = client.EndWindow("epoch");
  ASSERT_TRUE(measured.ok());
  EXPECT_NEAR(measured.value().Sum().energy.value(), 250 * 990, 60);
}

TEST_F(BoardReaderTest, AWindowOverLostReadingsOfPowerSaysSo) {
  FollowedMeter meter(BoardReader::Connect(path_).value(), "gpu:0");
  EnergyMonitor client(clock_, {{.meter = &meter}});
  const Error none{ErrorCode::kNotSupported, "no counter"};
  const auto record_until = [&](double seconds) {
    while (clock_.Now() < At(seconds)) {
      clock_.Advance(100ms);
      boards_->Record("gpu:0", clock_.Now(), {.energy = none, .power = 250_W});
    }
  };
  record_until(10);
  ASSERT_TRUE(client.BeginWindow("epoch").ok());
  record_until(1000);
  const auto measured = client.EndWindow("epoch");
  ASSERT_TRUE(measured.ok() && measured.value().devices[0].energy.ok());
  EXPECT_TRUE(measured.value().devices[0].energy.value().flags.Has(MeasurementFlag::kPartial));
}

TEST_F(BoardReaderTest, WhoMayNotReadGetsNoBoard) {
  admits_ = false;
  EXPECT_EQ(BoardReader::Connect(path_).error().code, ErrorCode::kPermissionDenied);
}

TEST_F(BoardReaderTest, WithoutADaemonThereIsNone) {
  server_.reset();
  EXPECT_FALSE(BoardReader::Connect(path_).ok());
  EXPECT_EQ(BoardReader::Connect("/nowhere/board.sock").error().code, ErrorCode::kNotFound);
}

TEST_F(BoardReaderTest, ADeviceIsFoundByEachOfItsNames) {
  const auto reader = BoardReader::Connect(path_).value();
  EXPECT_TRUE(reader->boards()->Find(gpu().identity().uuid));
  EXPECT_TRUE(reader->boards()->Find("gpu:0"));
  EXPECT_FALSE(reader->boards()->Find("gpu:1"));
  EXPECT_FALSE(reader->boards()->Find(""));
  EXPECT_EQ(reader->Follow("gpu:1"), nullptr);
}

TEST_F(BoardReaderTest, ReadingsGoOnWithTheNextDaemonInANewEpoch) {
  const auto reader = BoardReader::Connect(path_).value();
  const auto feed = reader->Follow("gpu:0");
  boards_->Record("gpu:0", At(1), Reading(100, 100));
  const auto before = feed->Next(At(1));
  ASSERT_TRUE(before);
  StartDaemon(2);
  boards_->Record("gpu:0", At(2), Reading(200, 100));
  EXPECT_FALSE(feed->HasNext(At(2)));  // Too early to look.

  const auto after = feed->Next(At(4));

  ASSERT_TRUE(after);
  EXPECT_EQ(after->time, At(2));
  EXPECT_GT(after->reading.energy->value().epoch, before->reading.energy->value().epoch);
}

TEST_F(BoardReaderTest, TheLastReadingsStayWhenTheDaemonIsGone) {
  const auto reader = BoardReader::Connect(path_).value();
  boards_->Record("gpu:0", At(1), Reading(100, 123));
  server_.reset();
  boards_.reset();
  reader->Refresh(At(10));
  const auto newest = reader->boards()->Find("gpu:0")->Newest();
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->reading.power->value(), 123_W);
}

TEST_F(BoardReaderTest, ReadingsFromTheFutureAndFromNoTimeAreNotTaken) {
  const auto reader = BoardReader::Connect(path_).value();
  const auto feed = reader->Follow("gpu:0");
  boards_->Record("gpu:0", At(std::numeric_limits<double>::quiet_NaN()), Reading(1, 1));
  boards_->Record("gpu:0", At(500), Reading(2, 1));
  boards_->Record("gpu:0", At(10.5), Reading(3, 1));
  EXPECT_FALSE(feed->Next(At(10)));  // Not yet: a clock may be ahead a little.
  const auto reading = feed->Next(At(11));
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->time, At(10.5));
  EXPECT_TRUE(reading->after_gap);
}

TEST_F(BoardReaderTest, AReadingIsWholeWhileItsWriterGoesOn) {
  const auto boards = BoardReader::Connect(path_).value()->boards();
  const DeviceView view = *boards->Find("gpu:0");
  constexpr int kWrites = 30000;
  UpdateCursor cursor(view);
  std::thread writer([&] {
    for (int i = 1; i <= kWrites; ++i) boards_->Record("gpu:0", At(i), Reading(2.0 * i, 3.0 * i));
  });
  double last = 0;
  while (last < kWrites) {
    if (const auto newest = view.Newest()) {
      const double time = newest->time.time_since_epoch().count();
      EXPECT_EQ(newest->reading.energy->value().total.value(), 2 * time);
      EXPECT_EQ(newest->reading.power->value().value(), 3 * time);
    }
    const auto reading = cursor.Next(At(kWrites));
    if (!reading) continue;
    const double time = reading->time.time_since_epoch().count();
    EXPECT_GT(time, last);
    EXPECT_EQ(reading->reading.energy->value().total.value(), 2 * time);
    EXPECT_TRUE(reading->after_gap || time == last + 1);
    last = time;
  }
  writer.join();
}

}  // namespace board_test
}  // namespace zeus::client
