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

// A driver that writes down what it was told, and may take its time.
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
    told.push_back(std::get<Hertz>(setting));
    if (told.size() == 1 && entered) entered->set_value();
    if (told.size() == 1 && release) release->get_future().wait();
    return refuses ? Status(Error{ErrorCode::kPermissionDenied, "needs root"}) : Ok();
  }
  Status Restore() override { return Ok(); }

  std::vector<Hertz> told{};  // Read after WaitUntilDone() only.
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
    setter.Ask(clock);
    setter.WaitUntilDone();
  }
  EXPECT_EQ(knob.told, (std::vector<Hertz>{1400_MHz, 900_MHz, 1400_MHz}));
  EXPECT_EQ(setter.changes(), 3);
  EXPECT_FALSE(setter.trouble());
}

TEST(ClockSetterTest, AskingDoesNotWaitForTheDriverAndTheLatestClockWins) {
  RecordingKnob knob;
  knob.entered.emplace();
  knob.release.emplace();
  ClockSetter setter(knob);
  setter.Ask(1400_MHz);
  knob.entered->get_future().wait();
  // The driver is at work: all these calls return nevertheless.
  for (const Hertz clock : {1300_MHz, 1200_MHz, 1100_MHz, 1000_MHz}) setter.Ask(clock);
  knob.release->set_value();
  setter.WaitUntilDone();
  EXPECT_EQ(knob.told, (std::vector<Hertz>{1400_MHz, 1000_MHz}));
}

TEST(ClockSetterTest, AClockThatIsAskedForAgainBeforeTheDriverIsDoneIsNotSetTwice) {
  RecordingKnob knob;
  knob.entered.emplace();
  knob.release.emplace();
  ClockSetter setter(knob);
  setter.Ask(1400_MHz);
  knob.entered->get_future().wait();
  setter.Ask(900_MHz);
  setter.Ask(1400_MHz);
  knob.release->set_value();
  setter.WaitUntilDone();
  EXPECT_EQ(knob.told, std::vector<Hertz>{1400_MHz});
}

TEST(ClockSetterTest, WhatTheDriverRefusesIsToldAndForgottenOnceItObeys) {
  RecordingKnob knob;
  ClockSetter setter(knob);
  knob.refuses = true;
  setter.Ask(1400_MHz);
  setter.WaitUntilDone();
  ASSERT_TRUE(setter.trouble());
  EXPECT_EQ(setter.trouble()->code, ErrorCode::kPermissionDenied);
  knob.refuses = false;
  setter.Ask(900_MHz);
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
