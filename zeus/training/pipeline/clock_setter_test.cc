#include "zeus/training/pipeline/clock_setter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace zeus {
namespace clock_setter_test {

using namespace zeus::literals;

// A knob that records its settings and can be made to block.
class RecordingKnob final : public Knob {
 public:
  const std::string& name() const override { return name_; }
  KnobKind kind() const override { return KnobKind::kGraphicsClock; }
  Result<std::vector<Setting>> Settings(const Setting&) override {
    return std::vector<Setting>{1400_MHz, 700_MHz};
  }
  Result<Setting> Current() override { return Setting(1400_MHz); }
  Watts max_power() const override { return 400_W; }
  Status Set(const Setting& setting) override {
    clocks.push_back(std::get<Hertz>(setting));
    if (clocks.size() == 1 && entered) entered->set_value();
    if (clocks.size() == 1 && release) release->get_future().wait();
    return refuses ? Status(Error{ErrorCode::kPermissionDenied, "needs root"}) : Ok();
  }
  Status Restore() override { return Ok(); }

  std::vector<Hertz> clocks{};  // Only to be read after WaitUntilDone().
  std::optional<std::promise<void>> entered{};
  std::optional<std::promise<void>> release{};
  std::atomic<bool> refuses = false;

 private:
  const std::string name_ = "graphics clock of gpu:0";
};

TEST(ClockSetterTest, TellsTheDriverOnlyChanges) {
  RecordingKnob knob;
  ClockSetter setter(knob);
  for (const Hertz clock : {1400_MHz, 1400_MHz, 900_MHz, 900_MHz, 1400_MHz}) {
    setter.Request(clock);
    setter.WaitUntilDone();
  }
  EXPECT_EQ(knob.clocks, (std::vector<Hertz>{1400_MHz, 900_MHz, 1400_MHz}));
  EXPECT_EQ(setter.changes(), 3);
  EXPECT_FALSE(setter.trouble());
}

TEST(ClockSetterTest, ARequestDoesNotWaitForTheDriverAndTheLatestClockWins) {
  RecordingKnob knob;
  knob.entered.emplace();
  knob.release.emplace();
  ClockSetter setter(knob);
  setter.Request(1400_MHz);
  knob.entered->get_future().wait();
  // The driver blocks, but these calls return.
  for (const Hertz clock : {1300_MHz, 1200_MHz, 1100_MHz, 1000_MHz}) setter.Request(clock);
  knob.release->set_value();
  setter.WaitUntilDone();
  EXPECT_EQ(knob.clocks, (std::vector<Hertz>{1400_MHz, 1000_MHz}));
}

TEST(ClockSetterTest, AClockThatIsRequestedAgainBeforeTheDriverIsDoneIsNotSetTwice) {
  RecordingKnob knob;
  knob.entered.emplace();
  knob.release.emplace();
  ClockSetter setter(knob);
  setter.Request(1400_MHz);
  knob.entered->get_future().wait();
  setter.Request(900_MHz);
  setter.Request(1400_MHz);
  knob.release->set_value();
  setter.WaitUntilDone();
  EXPECT_EQ(knob.clocks, std::vector<Hertz>{1400_MHz});
}

TEST(ClockSetterTest, WhatTheDriverRefusesIsToldAndForgottenOnceItObeys) {
  RecordingKnob knob;
  ClockSetter setter(knob);
  knob.refuses = true;
  setter.Request(1400_MHz);
  setter.WaitUntilDone();
  ASSERT_TRUE(setter.trouble());
  EXPECT_EQ(setter.trouble()->code, ErrorCode::kPermissionDenied);
  knob.refuses = false;
  setter.Request(900_MHz);
  setter.WaitUntilDone();
  EXPECT_FALSE(setter.trouble());
}

TEST(ClockSetterTest, NothingToDoIsDoneAtOnce) {
  RecordingKnob knob;
  ClockSetter setter(knob);
  setter.WaitUntilDone();
  EXPECT_EQ(setter.changes(), 0);
}

}  // namespace clock_setter_test
}  // namespace zeus
