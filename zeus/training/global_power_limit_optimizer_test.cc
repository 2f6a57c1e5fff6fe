#include "zeus/training/global_power_limit_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/sim/fault.h"
#include "zeus/training/profile_folder.h"
#include "zeus/training/testing/limit_choices.h"
#include "zeus/training/testing/simulated_node.h"
#include "zeus/training/training_loop.h"

namespace zeus {
namespace global_power_limit_optimizer_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using zeus::testing::SimulatedNode;

constexpr Watts kDefault = 250_W;  // The default limit of a V100.

// Trains until the optimizer is done, at most a thousand steps.
void Train(SimulatedNode& node, GlobalPowerLimitOptimizer& optimizer) {
  optimizer.OnEpochBegin();
  for (int i = 0; i < 1000 && !optimizer.done(); ++i) {
    optimizer.OnStepBegin();
    node.Step();
    optimizer.OnStepEnd();
  }
  optimizer.OnEpochEnd();
}

// Returns the true values of the simulation at a limit.
sim::OperatingPoint Truth(Watts limit) {
  return sim::Predict(sim::testing::Model("V100"), *sim::FindWorkload("shufflenet").value(), 1024,
                      {.power_limit = limit, .clock_cap = {}})
      .value();
}

TEST(GlobalPowerLimitOptimizerTest, AllGpusOfAJobGetTheSameLimitAndTheOldOneBack) {
  SimulatedNode node({"V100", "V100"}, {});
  {
    GlobalPowerLimitOptimizer optimizer(node.monitor(), Energy());
    Train(node, optimizer);
    ASSERT_TRUE(optimizer.done());
    ASSERT_THAT(optimizer.chosen(), SizeIs(1));
    EXPECT_EQ(optimizer.chosen()[0], Setting(125_W));  // The best by exhaustive simulation.
    EXPECT_EQ(node.limit(0), 125_W);
    EXPECT_EQ(node.limit(1), 125_W);
    EXPECT_EQ(optimizer.profile(0).max_power, 500_W);
    EXPECT_EQ(optimizer.profile(0).context.devices, 2);
  }
  EXPECT_EQ(node.limit(0), kDefault);
  EXPECT_EQ(node.limit(1), kDefault);
}

// A meter by which a step takes least energy at 150 W.
class InventedMeter final : public SliceMeter {
 public:
  Status Begin(const std::string& label) override {
    labels.push_back(label);
    return Ok();
  }
  Result<SliceReading> Peek() override { return Error{ErrorCode::kNotSupported, "not yet"}; }
  Result<Ticket> End() override { return Ticket(labels.size() - 1); }
  void Cancel() override {}
  Result<SliceReading> Read(Ticket ticket) override {
    const bool cheap = labels[static_cast<std::size_t>(ticket)] == "150 W";
    return SliceReading{.time = 1s, .energy = cheap ? 1_J : 1000_J};
  }

  std::vector<std::string> labels;
};

TEST(GlobalPowerLimitOptimizerTest, AnotherMeterMayMeasure) {
  SimulatedNode node({"V100"}, {});
  InventedMeter meter;
  GlobalPowerLimitOptimizer optimizer(node.monitor(), Energy(),
                                      {.rule = SliceRule::BySteps(0, 0, 2), .meter = &meter});
  EXPECT_EQ(optimizer.current().trying(), std::nullopt);
  optimizer.OnStepBegin();
  EXPECT_EQ(optimizer.current().trying(), Setting(kDefault));
  Train(node, optimizer);
  EXPECT_EQ(optimizer.chosen(), std::vector<Setting>{150_W});
  EXPECT_EQ(node.limit(0), 150_W);
}

TEST(GlobalPowerLimitOptimizerTest, AnObserverTellsWhatWouldHaveBeen) {
  SimulatedNode node({"V100"}, {});
  GlobalPowerLimitOptimizer optimizer(node.monitor(), Energy(), {.mode = OptimizerMode::kObserve});
  Train(node, optimizer);
  EXPECT_EQ(node.limit(0), kDefault);
  for (int i = 0; i < 2000; ++i) {
    optimizer.OnStepBegin();
    node.Step();
  }
  optimizer.OnTrainEnd();

  const auto savings = optimizer.Savings();
  ASSERT_TRUE(savings.ok()) << savings.error().message;
  const SavingsReport& report = savings.value().front();
  EXPECT_EQ(report.original, Setting(kDefault));
  EXPECT_EQ(report.best, Setting(125_W));
  const double time_ratio = Truth(125_W).time_per_epoch / Truth(kDefault).time_per_epoch;
  const double energy_ratio =
      time_ratio * (Truth(125_W).average_power / Truth(kDefault).average_power);
  EXPECT_NEAR(report.at_best.time / report.at_original.time, time_ratio, 0.005);
  EXPECT_NEAR(report.at_best.energy / report.at_original.energy, energy_ratio, 0.02);
  EXPECT_GT(report.at_best.energy_sigma, 0_J);
  EXPECT_GT(report.change.energy_sigma, 0_J);
  EXPECT_THAT(ToText(report), HasSubstr("125 W instead of 250 W: energy -2"));
}

TEST(GlobalPowerLimitOptimizerTest, TheClockIsOptimisedAfterTheLimit) {
  SimulatedNode node({"V100"}, {});
  GlobalPowerLimitOptimizer optimizer(
      node.monitor(), Energy(), {.knobs = {KnobKind::kGpuPowerLimit, KnobKind::kGraphicsClock}});
  Train(node, optimizer);
  ASSERT_TRUE(optimizer.done());
  ASSERT_EQ(optimizer.profile_count(), 2u);
  EXPECT_EQ(optimizer.profile(1).knob, KnobKind::kGraphicsClock);
  EXPECT_GT(optimizer.profile(1).points.size(), 5u);
  ASSERT_THAT(optimizer.chosen(), SizeIs(2));
  EXPECT_EQ(node.limit(0), std::get<Watts>(optimizer.chosen()[0]));
  optimizer.OnTrainEnd();
  EXPECT_EQ(node.limit(0), kDefault);
}

TEST(GlobalPowerLimitOptimizerTest, AGpuThatRefusesToBeSetLetsTheJobGoOn_W5) {
  SimulatedNode node({"V100"}, {});
  ASSERT_TRUE(node.gpu(0).InjectFault({.kind = sim::FaultKind::kNoPermission}));
  GlobalPowerLimitOptimizer optimizer(node.monitor());
  Train(node, optimizer);

  ASSERT_TRUE(optimizer.trouble());
  EXPECT_EQ(optimizer.trouble()->code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(node.limit(0), kDefault);
  const auto used = optimizer.Used();  // The job is measured even if it is not optimised.
  ASSERT_TRUE(used.ok());
  EXPECT_GT(used.value().energy, 0_J);
  EXPECT_FALSE(optimizer.Savings().ok());
}

TEST(GlobalPowerLimitOptimizerTest, GpusThatBeganDifferentlyAreLeftAlone) {
  SimulatedNode node({"V100", "V100"}, {});
  ASSERT_TRUE(node.gpu(1).SetPowerLimitWithoutJournal(150_W).ok());
  GlobalPowerLimitOptimizer optimizer(node.monitor());
  Train(node, optimizer);
  ASSERT_TRUE(optimizer.trouble());
  EXPECT_THAT(optimizer.trouble()->message, HasSubstr("set the same on all"));
  EXPECT_THAT(optimizer.trouble()->message, HasSubstr("--gpus 0"));
  EXPECT_EQ(node.limit(0), kDefault);
  EXPECT_EQ(node.limit(1), 150_W);
}

Watts HighestTried(SimulatedNode& node, Selector selector, JitOptions options) {
  GlobalPowerLimitOptimizer optimizer(node.monitor(), std::move(selector), std::move(options));
  Watts highest(0);
  for (int i = 0; i < 3000 && !optimizer.done(); ++i) {
    optimizer.OnStepBegin();
    node.Step();
    highest = std::max(highest, node.limit(0));
  }
  EXPECT_TRUE(optimizer.done());
  return highest;
}

TEST(GlobalPowerLimitOptimizerTest, TheLimitThatWasFoundIsNeverExceeded) {
  SimulatedNode node({"A100"}, {});
  ASSERT_TRUE(node.gpu(0).SetPowerLimitWithoutJournal(250_W).ok());
  EXPECT_EQ(HighestTried(node, ZeusCost(0), {}), 250_W);
  EXPECT_EQ(HighestTried(node, ZeusCost(0), {.settings = {400_W, 250_W, 150_W}}), 250_W);
  EXPECT_EQ(HighestTried(node, ZeusCost(0), {.ceiling = Ceiling::kOfDevice}), 400_W);
  EXPECT_EQ(node.limit(0), 250_W);
}

TEST(GlobalPowerLimitOptimizerTest, AProfileFromBeforeACapIsUsedUpToTheCap) {
  zeus::testing::TemporaryDirectory folder;
  const JitOptions options{.profile_folder = folder.path(), .job = "capped"};
  {
    SimulatedNode node({"A100"}, {});
    EXPECT_EQ(HighestTried(node, ZeusCost(0), options), 400_W);
  }
  SimulatedNode node({"A100"}, {});
  ASSERT_TRUE(node.gpu(0).SetPowerLimitWithoutJournal(250_W).ok());
  GlobalPowerLimitOptimizer optimizer(node.monitor(), ZeusCost(0), options);
  ASSERT_TRUE(optimizer.done()) << "nothing is measured again";
  EXPECT_LE(node.limit(0), 250_W);
}

TEST(GlobalPowerLimitOptimizerTest, TrainingThatGoesOnIsOptimisedOn) {
  SimulatedNode node({"V100"}, {});
  GlobalPowerLimitOptimizer optimizer(node.monitor(), Energy());
  optimizer.OnTrainBegin();
  Train(node, optimizer);
  optimizer.OnTrainEnd();
  EXPECT_EQ(node.limit(0), kDefault);
  const JobUse first = optimizer.Used().value();

  optimizer.OnTrainBegin();

  EXPECT_EQ(node.limit(0), 125_W);
  for (int i = 0; i < 10; ++i) {
    optimizer.OnStepBegin();
    node.Step();
  }
  optimizer.OnTrainEnd();
  EXPECT_EQ(node.limit(0), kDefault);
  EXPECT_GT(optimizer.Used().value().energy, first.energy);
}

TEST(GlobalPowerLimitOptimizerTest, AMonitorWithoutGpusSaysSo) {
  SimulatedNode node({}, {});
  GlobalPowerLimitOptimizer optimizer(node.monitor());
  optimizer.OnStepBegin();
  ASSERT_TRUE(optimizer.trouble());
  EXPECT_THAT(optimizer.trouble()->message, HasSubstr("zeus doctor"));
}

TEST(GlobalPowerLimitOptimizerTest, AnUnlockableClockIsSaidAndTheRestGoesOn) {
  SimulatedNode node({"P100"}, {});
  GlobalPowerLimitOptimizer optimizer(
      node.monitor(), Energy(), {.knobs = {KnobKind::kGraphicsClock, KnobKind::kGpuPowerLimit}});
  Train(node, optimizer);
  EXPECT_TRUE(optimizer.trouble());
  EXPECT_THAT(optimizer.chosen(), SizeIs(1));
}

class KeptProfileTest : public ::testing::Test {
 protected:
  JitOptions InFolder() {
    return {.profile_folder = directory_.path(), .job = "resnet", .batch_size = 1024};
  }
  JitOptions InFile() { return {.profile_file = file_, .job = "resnet", .batch_size = 1024}; }
  // Returns the time that it took to decide.
  Seconds Run(SimulatedNode& node, JitOptions options) {
    GlobalPowerLimitOptimizer optimizer(node.monitor(), Energy(), std::move(options));
    const TimePoint begin = node.clock().Now();
    Train(node, optimizer);
    EXPECT_TRUE(optimizer.done());
    EXPECT_EQ(optimizer.trouble(), std::nullopt);
    optimizer.OnTrainEnd();
    return node.clock().Now() - begin;
  }
  std::string Content() {
    std::ifstream file(file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const zeus::testing::TemporaryDirectory directory_;
  const std::filesystem::path file_ = directory_.path() / "profile.json";
};

TEST_F(KeptProfileTest, TheNextRunOfTheSameJobNeedNotProfile) {
  SimulatedNode node({"V100"}, {});
  EXPECT_GT(Run(node, InFolder()), 1s);
  EXPECT_EQ(Run(node, InFolder()), 0s);
  JitOptions other = InFolder();
  other.batch_size = 512;
  EXPECT_GT(Run(node, other), 1s);
}

TEST_F(KeptProfileTest, AnotherGpuIsProfiledAnew) {
  SimulatedNode volta({"V100"}, {});
  Run(volta, InFile());
  const std::string kept = Content();
  SimulatedNode ampere({"A40"}, {});
  EXPECT_GT(Run(ampere, InFile()), 1s);
  EXPECT_EQ(Content(), kept);  // The other job's profile is not overwritten.
}

TEST_F(KeptProfileTest, ATruncatedProfileIsMeasuredAgainAndReplaced) {
  SimulatedNode node({"V100"}, {});
  Run(node, InFile());
  const std::string whole = Content();
  for (const std::size_t size : {std::size_t{0}, whole.size() / 2, whole.size() - 3}) {
    std::ofstream(file_, std::ios::trunc) << whole.substr(0, size);
    EXPECT_GT(Run(node, InFile()), 1s) << size;
    EXPECT_TRUE(ReadProfileFile(file_).ok()) << size;
  }
}

TEST_F(KeptProfileTest, AProfileOfTheReferenceImplementationIsUsed) {
  std::ofstream(file_) << R"({"measurements": [
    {"power_limit": 250, "energy": 1000.0, "time": 10.0},
    {"power_limit": 200, "energy": 700.0, "time": 10.5},
    {"power_limit": 150, "energy": 800.0, "time": 14.0}]})";
  SimulatedNode node({"V100"}, {});
  GlobalPowerLimitOptimizer optimizer(node.monitor(), Energy(), InFile());
  EXPECT_TRUE(optimizer.done());
  EXPECT_EQ(node.limit(0), 200_W);
}

TEST_F(KeptProfileTest, AJobThatWasTooShortLeavesWhatItLearned_W9) {
  SimulatedNode node({"V100"}, {});
  {
    GlobalPowerLimitOptimizer optimizer(node.monitor(), Energy(), InFile());
    for (int i = 0; i < 30; ++i) {
      optimizer.OnStepBegin();
      node.Step();
    }
    EXPECT_FALSE(optimizer.done());
    optimizer.OnTrainEnd();
    EXPECT_EQ(node.limit(0), kDefault);
  }
  const auto partial = ReadProfileFile(file_);
  ASSERT_TRUE(partial.ok()) << partial.error().message;
  EXPECT_FALSE(partial.value().complete);
  SimulatedNode other({"V100"}, {});
  const Seconds whole = Run(other, {});
  EXPECT_LT(Run(node, InFile()), whole);
  EXPECT_TRUE(ReadProfileFile(file_).value().complete);
}

TEST_F(KeptProfileTest, AFolderThatCannotBeWrittenCostsNothingElse) {
  SimulatedNode node({"V100"}, {});
  std::ofstream(directory_.path() / "file") << "not a folder";
  JitOptions options = InFolder();
  options.profile_folder = directory_.path() / "file" / "below";
  EXPECT_GT(Run(node, options), 1s);
}

}  // namespace global_power_limit_optimizer_test
}  // namespace zeus

namespace zeus::testing {
namespace global_power_limit_optimizer_test {

class LimitChoicesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LimitChoicesTest, TheChosenLimitCostsAtMostOnePercentMoreThanTheBest) {
  const sim::GpuModel& model = *sim::FindGpuModel(GetParam()).value();
  for (const sim::Workload& workload : sim::Workloads()) {
    const LimitChoices choices = ChooseLimits(model, workload);
    for (std::size_t i = 0; i < kEtas.size(); ++i)
      EXPECT_LE(choices.excess[i].of_tried, 1.0) << workload.name << ", eta " << kEtas[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, LimitChoicesTest, ::testing::ValuesIn(kRecordedGpuModels),
                         [](const auto& gpu) { return std::string(gpu.param); });

}  // namespace global_power_limit_optimizer_test
}  // namespace zeus::testing
