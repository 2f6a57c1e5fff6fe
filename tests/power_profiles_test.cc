// Replays profiles that were recorded on real GPUs through the optimiser.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "zeus/base/testing/places.h"
#include "zeus/optimizer/power_limit/testing/fake_job.h"

namespace zeus {
namespace power_profiles_test {

using zeus::testing::FakeJob;
using zeus::testing::FakeStep;

constexpr double kStepsPerSlice = 40;

// One slice of 40 steps at each limit; energies are summed over the GPUs.
struct Recording {
  std::string name;
  int gpus = 0;
  std::map<Watts, FakeStep> steps{};

  Watts max() const { return steps.rbegin()->first; }
  Watts min() const { return steps.begin()->first; }
};

std::filesystem::path Folder() {
  return zeus::testing::RecordedData("ZEUS_POWER_PROFILE_DIR", "power_profiles");
}

Recording ReadRecording(const std::filesystem::path& path) {
  Recording recording{.name = path.stem().string()};
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  recording.gpus = static_cast<int>(std::ranges::count(line, ',')) - 2;
  while (std::getline(file, line)) {
    std::istringstream row(line);
    std::string start, window, number;
    std::getline(row, start, ',');
    std::getline(row, window, ',');
    std::getline(row, number, ',');
    FakeStep step{.time = Seconds(std::stod(number) / kStepsPerSlice), .energy = Joules(0)};
    while (std::getline(row, number, ','))
      step.energy += Joules(std::stod(number) / kStepsPerSlice);
    recording.steps[Watts(std::stod(window.substr(window.rfind('_') + 1)))] = step;
  }
  return recording;
}

class PowerProfilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::error_code absent;
    for (const auto& entry : std::filesystem::directory_iterator(Folder(), absent))
      if (entry.path().extension() == ".csv") recordings_.push_back(ReadRecording(entry.path()));
    if (recordings_.empty())
      GTEST_SKIP() << "no recorded profiles in " << Folder()
                   << " (ZEUS_POWER_PROFILE_DIR names another directory)";
    std::ranges::sort(recordings_, {}, &Recording::name);
  }

  std::vector<Recording> recordings_;
};

FakeJob MakeFakeJob(const Recording& recording) {
  return FakeJob([&recording](Watts limit) { return recording.steps.at(limit); },
                 {recording.min(), recording.max()}, recording.max());
}

// Computes the best limit directly from the numbers of the recording.
Watts Cheapest(const Recording& recording, const std::function<double(const FakeStep&)>& cost) {
  return std::ranges::min_element(recording.steps, {},
                                  [&](const auto& at) { return cost(at.second); })
      ->first;
}
Watts LowestWithin(const Recording& recording, double factor) {
  const Seconds bound = factor * recording.steps.at(recording.max()).time;
  return std::ranges::find_if(recording.steps,
                              [&](const auto& at) { return at.second.time <= bound; })
      ->first;
}

struct Objective {
  Selector selector;
  Watts expected;
};

std::vector<Objective> Objectives(const Recording& recording) {
  std::vector<Objective> objectives{
      {Energy(), Cheapest(recording, [](const FakeStep& s) { return s.energy.value(); })},
      {Time(), Cheapest(recording, [](const FakeStep& s) { return s.time.count(); })}};
  for (const double eta : {0.0, 0.25, 0.5, 0.75, 1.0})
    objectives.push_back({ZeusCost(eta), Cheapest(recording, [&](const FakeStep& s) {
                            return eta * s.energy.value() +
                                   (1 - eta) * recording.max().value() * s.time.count();
                          })});
  for (const double factor : {1.0, 1.05, 1.1, 1.2, 1.5, 2.0})
    objectives.push_back({MaxSlowdownConstraint(factor), LowestWithin(recording, factor)});
  return objectives;
}

// The recording has no uncertainty, so the replayed profile has none either, except for rounding.
Profile Measured(const Recording& recording, int interrupt_after = 0) {
  FakeJob job = MakeFakeJob(recording);
  PowerLimitOptimizer optimizer(job.parts(), {.rule = SliceRule::BySteps()});
  for (int step = 1; !optimizer.done(); ++step) {
    job.Step(optimizer);
    if (step != interrupt_after) continue;
    optimizer.OnEpochEnd();
    job.Evaluate();
    optimizer.OnEpochBegin();
  }
  return optimizer.profile();
}

Watts ChosenLimit(const Selector& selector, const Profile& profile) {
  return std::get<Watts>(profile.points[selector.select(profile).value()].setting);
}

TEST_F(PowerProfilesTest, EverySelectorFindsTheOptimumThatTheNumbersImply) {
  ASSERT_EQ(recordings_.size(), 12u);
  for (const Recording& recording : recordings_) {
    for (const Objective& objective : Objectives(recording)) {
      FakeJob job = MakeFakeJob(recording);
      PowerLimitOptimizer optimizer(job.parts(),
                                    {.selector = objective.selector, .rule = SliceRule::BySteps()});
      job.Train(optimizer, 1000, 1);

      ASSERT_TRUE(optimizer.done()) << recording.name;
      EXPECT_EQ(job.knob.present().value(), objective.expected.value())
          << recording.name << ", " << objective.selector.name;
    }
  }
}

TEST_F(PowerProfilesTest, InterruptedAtAnyStepTheAnswerIsTheSame) {
  for (const Recording& recording : recordings_) {
    const int steps = 2 + static_cast<int>(recording.steps.size()) * 50;
    for (int interrupt = 1; interrupt < steps; ++interrupt) {
      const Profile profile = Measured(recording, interrupt);
      for (const Objective& objective : Objectives(recording))
        ASSERT_EQ(ChosenLimit(objective.selector, profile).value(), objective.expected.value())
            << recording.name << ", " << objective.selector.name << ", after step " << interrupt;
    }
  }
}

}  // namespace power_profiles_test
}  // namespace zeus
