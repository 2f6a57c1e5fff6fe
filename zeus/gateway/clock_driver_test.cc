#include "zeus/gateway/clock_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <fstream>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::gateway::clock_driver_test {
namespace {

using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;

// The clock of a GPU that tests look at while the driver has its knob.
struct FakeGpu {
  std::optional<Hertz> lock{};
  bool busy = false;
  std::string foreign{};        // Why IsOurs() fails.
  std::string refusal{};        // Why Lock() fails.
  std::optional<Hertz> runs{};  // In spite of the lock.
  int locks = 0;
  int releases = 0;
  bool disowned = false;

  Hertz clock() const { return runs.value_or(lock.value_or(2000_MHz)); }
};

class FakeKnob final : public ClockKnob {
 public:
  explicit FakeKnob(FakeGpu& gpu) : gpu_(gpu) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Hertz>> Supported() override {
    std::vector<Hertz> clocks;
    for (int i = 2; i <= 20; ++i) clocks.push_back(Hertz::FromMega(100.0 * i));
    return clocks;
  }
  Result<Hertz> Present() override { return gpu_.clock(); }
  Result<bool> IsOurs() override {
    if (!gpu_.foreign.empty()) return Error{ErrorCode::kUnavailable, gpu_.foreign};
    return gpu_.lock.has_value() || gpu_.busy;
  }
  void Disown() override { gpu_.disowned = true; }
  Status Lock(Hertz clock) override {
    if (!gpu_.refusal.empty()) return Error{ErrorCode::kPermissionDenied, gpu_.refusal};
    gpu_.lock = clock;
    ++gpu_.locks;
    return Ok();
  }
  Status Release() override {
    gpu_.lock.reset();
    ++gpu_.releases;
    return Ok();
  }

 private:
  FakeGpu& gpu_;
  const std::string name_ = "graphics clock of gpu:0";
};

// An engine that gives every request a token in each iteration of 10 ms, or longer below 1 GHz,
// while the driver's thread is played by the test.
class ClockDriverTest : public ::testing::Test {
 protected:
  void Make(GovernorSwitch mode) {
    std::vector<GovernedGpus> groups;
    groups.push_back({.upstream = 0,
                      .upstream_name = "http://127.0.0.1:8000",
                      .gpus = "gpu:0",
                      .gpu_model = "1 x H100",
                      .knob = std::make_unique<FakeKnob>(gpu_),
                      .energy = [this] { return energy_; }});
    auto driver = ClockDriver::Create({.targets = {.ttft = 1s, .tpot = 0.1s},
                                       .mode = mode,
                                       .groups = std::move(groups),
                                       .knowledge_folder = folder_.path()},
                                      clock_);
    ASSERT_TRUE(driver.ok()) << driver.error().message;
    driver_ = std::move(driver).value();
  }

  void Arrive() {
    live_.push_back({.id = ++last_id_});
    driver_->OnRequest({.kind = RequestEvent::Kind::kArrived,
                        .id = last_id_,
                        .time = clock_.Now(),
                        .tokens = 100,
                        .model = "llama"});
  }

  // Serves a request every `gap` for so long.
  void Serve(Seconds length, Seconds gap) {
    const TimePoint end = clock_.Now() + length;
    TimePoint next = clock_.Now();
    while (clock_.Now() < end) {
      if (clock_.Now() >= next) {
        Arrive();
        next += gap;
      }
      Iterate();
    }
  }
  void Rest(Seconds length) {
    const TimePoint end = clock_.Now() + length;
    while (clock_.Now() < end || !live_.empty()) Iterate();
  }

  void Iterate() {
    const double relative = gpu_.clock() / 2000_MHz;
    const Seconds iteration(0.005 + 0.005 / relative);
    gpu_.busy = !live_.empty();
    clock_.Advance(iteration);
    energy_ += Watts(live_.empty() ? 60 : 100 + 500 * relative * relative) * iteration;
    for (Live& request : live_) {
      driver_->OnRequest({.kind = RequestEvent::Kind::kTokens,
                          .id = request.id,
                          .time = clock_.Now(),
                          .tokens = 1});
      ++request.tokens;
    }
    while (!live_.empty() && live_.front().tokens >= 30) {
      driver_->OnRequest({.kind = RequestEvent::Kind::kEnded,
                          .id = live_.front().id,
                          .time = clock_.Now(),
                          .tokens = 100});
      live_.pop_front();
    }
    driver_->Step();
  }

  Json Group() const { return driver_->ToJson()["groups"][0]; }

  struct Live {
    InferenceRequestId id = 0;
    int tokens = 0;
  };
  zeus::testing::TemporaryDirectory folder_;
  VirtualClock clock_;
  FakeGpu gpu_;
  Joules energy_{};
  std::deque<Live> live_{};
  InferenceRequestId last_id_ = 0;
  std::unique_ptr<ClockDriver> driver_{};
};

TEST_F(ClockDriverTest, NothingIsLockedBeforeTheGpuWasSeenAtWork) {
  Make(GovernorSwitch::kOn);
  Rest(5s);
  EXPECT_EQ(gpu_.locks, 0);
  EXPECT_EQ(Group()["state"], "waiting");
  Serve(1s, 0.1s);
  EXPECT_GT(gpu_.locks, 0);
  EXPECT_EQ(Group()["state"], "learning");
  EXPECT_EQ(gpu_.lock, 2000_MHz);
}

TEST_F(ClockDriverTest, ALightLoadLowersTheClockAndStopPutsItBack) {
  Make(GovernorSwitch::kOn);
  Serve(90s, 0.3s);
  ASSERT_TRUE(gpu_.lock.has_value());
  EXPECT_LT(*gpu_.lock, 1200_MHz) << Group().dump();
  EXPECT_EQ(driver_->LockedClock(0), gpu_.lock);
  EXPECT_EQ(Group()["locked_clock_hertz"], gpu_.lock->value());
  EXPECT_GT(Group()["saved_joules"].get<double>(), 0);
  EXPECT_EQ(Group()["missed_requests"], 0);
  EXPECT_THAT(driver_->Summary().front(), HasSubstr("saved about"));
  EXPECT_TRUE(driver_->Stop().ok());
  EXPECT_FALSE(gpu_.lock.has_value());
  EXPECT_EQ(driver_->LockedClock(0), std::nullopt);
  EXPECT_THAT(driver_->Summary().front(), HasSubstr("saved about"));
}

TEST_F(ClockDriverTest, AfterARestTheNextRequestRaisesTheClockAtOnce) {
  Make(GovernorSwitch::kOn);
  Serve(90s, 0.3s);
  Rest(3s);
  ASSERT_EQ(gpu_.lock, 200_MHz);
  EXPECT_EQ(Group()["state"], "idle");
  Arrive();
  driver_->Step();  // The time has not moved: no period has passed.
  EXPECT_NE(Group()["state"], "idle");
}

TEST_F(ClockDriverTest, AnObserverTouchesNothing) {
  Make(GovernorSwitch::kObserve);
  Serve(90s, 0.3s);
  EXPECT_EQ(gpu_.locks, 0);
  EXPECT_LT(Group()["wanted_clock_hertz"].get<double>(), 2000e6);
  EXPECT_TRUE(Group()["locked_clock_hertz"].is_null());
  EXPECT_GT(Group()["saved_joules"].get<double>(), 0);
  EXPECT_THAT(driver_->Summary().front(), HasSubstr("would have saved about"));
  const Status switched = driver_->Switch(GovernorSwitch::kOn);
  ASSERT_FALSE(switched.ok());
  EXPECT_EQ(switched.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(driver_->Stop().ok());
  EXPECT_EQ(gpu_.locks, 0);
}

TEST_F(ClockDriverTest, AClockThatWasLockedBeforeIsLeftAlone) {
  gpu_.foreign = "another program has locked the graphics clock of gpu:0 to 1005 MHz";
  Make(GovernorSwitch::kOn);
  Serve(5s, 0.3s);
  EXPECT_EQ(gpu_.locks, 0);
  EXPECT_EQ(Group()["state"], "foreign");
  EXPECT_EQ(Group()["stands_still"], true);
  EXPECT_THAT(Group()["text"].get<std::string>(), HasSubstr("locked the graphics clock of gpu:0"));
  gpu_.foreign.clear();
  Serve(1s, 0.3s);
  EXPECT_GT(gpu_.locks, 0);
  EXPECT_EQ(Group()["stands_still"], false);
}

TEST_F(ClockDriverTest, AClockThatAnotherProgramRaisesIsDisowned) {
  Make(GovernorSwitch::kOn);
  Serve(90s, 0.3s);
  gpu_.runs = 1900_MHz;
  gpu_.foreign = "another program has locked the graphics clock of gpu:0 to 1900 MHz";
  const int locks = gpu_.locks;
  Serve(10s, 0.3s);
  EXPECT_TRUE(gpu_.disowned);
  EXPECT_EQ(Group()["state"], "foreign");
  EXPECT_LE(gpu_.locks, locks + 2);  // Until it is believed.
  const int then = gpu_.locks;
  Serve(120s, 0.3s);
  EXPECT_EQ(gpu_.locks, then);
}

TEST_F(ClockDriverTest, ARefusedLockStandsStillAndTriesAgainAfterAMinute) {
  Make(GovernorSwitch::kOn);
  gpu_.refusal = "lock the clock of gpu:0: no permission";
  Serve(5s, 0.3s);
  EXPECT_EQ(Group()["state"], "foreign");
  EXPECT_THAT(Group()["text"].get<std::string>(), HasSubstr("no permission"));
  gpu_.refusal.clear();
  Serve(70s, 0.3s);
  EXPECT_NE(Group()["state"], "foreign");
  EXPECT_GT(gpu_.locks, 0);
}

TEST_F(ClockDriverTest, SwitchedOffItPutsTheClockBackAndKnowsTheEngineAfterwards) {
  Make(GovernorSwitch::kOn);
  Serve(90s, 0.3s);
  const double missed = Group()["requests"];
  ASSERT_TRUE(driver_->Switch(GovernorSwitch::kOff).ok());
  driver_->Step();
  EXPECT_FALSE(gpu_.lock.has_value());
  Serve(10s, 0.3s);
  EXPECT_FALSE(gpu_.lock.has_value());
  EXPECT_EQ(Group()["state"], "off");
  EXPECT_EQ(Group()["requests"], missed);  // Requests while it is off are not its own.
  ASSERT_TRUE(driver_->Switch(GovernorSwitch::kOn).ok());
  Serve(10s, 0.3s);
  EXPECT_LT(gpu_.lock.value_or(2000_MHz), 1500_MHz) << Group().dump();
  EXPECT_GT(Group()["requests"], missed);
}

TEST_F(ClockDriverTest, AGovernorThatIsSwitchedOnKnowsTheRequestsInFlight) {
  Make(GovernorSwitch::kOn);
  Serve(90s, 0.3s);
  ASSERT_TRUE(driver_->Switch(GovernorSwitch::kOff).ok());
  Serve(10s, 0.3s);
  for (int i = 0; i < 8; ++i) Arrive();
  Iterate();
  ASSERT_TRUE(driver_->Switch(GovernorSwitch::kOn).ok());
  Iterate();
  EXPECT_NE(Group()["state"], "idle");
  EXPECT_GE(Group()["in_flight"], 8);
}

TEST_F(ClockDriverTest, TheNextStartNeedsNoMinuteOfLearning) {
  Make(GovernorSwitch::kOn);
  Serve(90s, 0.3s);
  ASSERT_TRUE(driver_->Stop().ok());
  Make(GovernorSwitch::kOn);
  Serve(15s, 0.3s);
  EXPECT_EQ(Group()["learned"], true);
  EXPECT_LT(gpu_.lock.value_or(2000_MHz), 1500_MHz) << Group().dump();
}

TEST_F(ClockDriverTest, ADamagedFileOfKnowledgeIsIgnored) {
  const EngineKnowledgeStore store(folder_.path());
  const EngineName engine{.model = "a/b", .gpus = "1 x H100", .highest = 2000_MHz};
  EngineKnowledge knowledge{.idle_watts = 60, .clocks = {0.5, 1}, .ratios = {0.8, 1}};
  knowledge.times.fill(0.001);
  ASSERT_TRUE(store.Save(engine, knowledge).ok());
  EXPECT_EQ(store.Find(engine), knowledge);
  EXPECT_EQ(store.Find({.model = "a-b", .gpus = "1 x H100", .highest = 2000_MHz}), std::nullopt);
  EXPECT_EQ(store.Find({.model = "a/b", .gpus = "1 x H100", .highest = 1400_MHz}), std::nullopt);
  std::ofstream(store.File(engine)) << R"({"schema": "zeus.engine_knowledge/1"})";
  EXPECT_EQ(store.Find(engine), std::nullopt);
}

TEST_F(ClockDriverTest, MetricsCountRequestsByOutcome) {
  Make(GovernorSwitch::kOn);
  Serve(10s, 0.3s);
  Rest(1s);
  MetricSet set;
  driver_->AddMetrics(set);
  const std::string text = set.Text();
  EXPECT_THAT(text,
              HasSubstr("zeus_llm_governor_requests_total{gpus=\"gpu:0\",outcome=\"kept\"} 3"));
  EXPECT_THAT(text, HasSubstr("zeus_llm_governor_state{gpus=\"gpu:0\",state=\"idle\"} 1"));
}

TEST_F(ClockDriverTest, WithoutGpusThereIsNothingToGovern) {
  const auto driver = ClockDriver::Create({.targets = {.ttft = 1s}}, clock_);
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace zeus::gateway::clock_driver_test
