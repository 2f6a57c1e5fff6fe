#include "zeus/optimizer/batch_size/policy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/random.h"

namespace zeus {
namespace policy_test {

PolicySpec Spec(std::string_view name) {
  return {.name = std::string(name),
          .batch_sizes = {8, 16, 24, 32, 64},
          .default_batch_size = 24,
          .max_epochs = 20,
          .seed = 11};
}

std::unique_ptr<BatchSizePolicy> Make(const PolicySpec& spec) {
  auto made = MakePolicy(spec);
  return made.ok() ? std::move(made).value() : nullptr;
}

class EveryPolicyTest : public ::testing::TestWithParam<const char*> {};

constexpr std::array<const char*, 3> kGpuModels = {"V100", "A40", "H100"};

// Everything that can happen to a policy, in random order: runs on several GPU models that overlap,
// fail, end late, are not worth starting, or whose epoch cost was not measured.
class Turmoil {
 public:
  explicit Turmoil(std::uint64_t seed) : random_(seed) {}

  void Step(BatchSizePolicy& policy) {
    const std::string model = kGpuModels[random_.Below(kGpuModels.size())];
    if (random_.Uniform() < 0.1)
      policy.LearnEpochCost(model, BatchSize(), Joules(random_.Uniform(1, 50)));
    if (under_way_.empty() || random_.Uniform() < 0.5)
      Begin(policy, model);
    else
      End(policy);
  }

 private:
  int BatchSize() { return Spec("zeus").batch_sizes[random_.Below(5)]; }

  void Begin(BatchSizePolicy& policy, const std::string& model) {
    const Situation situation{.recurrence = recurrence_++,
                              .attempt = static_cast<int>(random_.Below(4)),
                              .gpu_model = model,
                              .exploring = random_.Uniform() < 0.3};
    const Choice choice = policy.Choose(situation);
    under_way_.push_back({.recurrence = situation.recurrence,
                          .attempt = situation.attempt,
                          .gpu_model = model,
                          .batch_size = random_.Uniform() < 0.1 ? BatchSize() : choice.batch_size,
                          .role = choice.role});
  }

  void End(BatchSizePolicy& policy) {
    const std::size_t index = random_.Below(under_way_.size());
    const PlannedRun run = under_way_[index];
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(index));
    const Joules epoch_cost(random_.Uniform(1, 50));
    const int budget = policy.EpochBudget(run, epoch_cost);
    ASSERT_GE(budget, 0);
    ASSERT_LE(budget, 20);
    const int needed = 3 + static_cast<int>(random_.Below(20));
    const int epochs = std::min(budget, needed);
    RunResult result{.run = run,
                     .converged = epochs > 0 && needed <= budget,
                     .epochs = epochs,
                     .cost = epochs * epoch_cost,
                     .recurrence_cost = (epochs + random_.Uniform()) * epoch_cost};
    if (random_.Uniform() < 0.8) result.epoch_cost = epoch_cost;
    policy.Observe(result);
  }

  Random random_;
  std::int64_t recurrence_ = 0;
  std::vector<PlannedRun> under_way_;
};

std::string Describe(const BatchSizePolicy& policy) {
  std::string text(policy.stage());
  for (const char* const model : kGpuModels) {
    text += fmt::format(" {} {}:", model, policy.Best(model));
    for (const ArmBelief& arm : policy.Beliefs(model))
      text += fmt::format(" {}/{}/{}/{}/{}", arm.batch_size, static_cast<int>(arm.state), arm.runs,
                          arm.converged, arm.cost.value_or(Joules(-1)).value());
  }
  return text;
}

TEST_P(EveryPolicyTest, GoesOnAfterARestoreAsIfNothingHadHappened) {
  for (int seed = 0; seed < 20; ++seed) {
    PolicySpec spec = Spec(GetParam());
    spec.window = seed % 4 == 0 ? 6 : 0;
    if (seed % 4 == 1) spec.beta.reset();
    if (seed % 4 == 2) spec.prior_precision = 1e-4;
    const auto untouched = Make(spec);
    auto restored = Make(spec);
    Turmoil a(static_cast<std::uint64_t>(seed)), b(static_cast<std::uint64_t>(seed));
    for (int step = 0; step < 150; ++step) {
      a.Step(*untouched);
      b.Step(*restored);
      const std::string saved = restored->Save().dump();
      ASSERT_EQ(saved, untouched->Save().dump()) << step;
      auto again = RestorePolicy(spec, ParseJson(saved).value());
      ASSERT_TRUE(again.ok()) << again.error().message << ": " << saved;
      restored = std::move(again).value();
      ASSERT_EQ(restored->Save().dump(), saved);
      ASSERT_EQ(Describe(*restored), Describe(*untouched)) << step;
    }
  }
}

TEST_P(EveryPolicyTest, StateStaysSmall) {
  const auto policy = Make(Spec(GetParam()));
  Turmoil turmoil(3);
  for (int step = 0; step < 20'000; ++step) turmoil.Step(*policy);
  EXPECT_LT(policy->Save().dump().size(), 2500) << policy->Save().dump();
}

// A changed state is either refused or yields a policy that works; it never crashes.
TEST_P(EveryPolicyTest, DamagedStateIsRefusedOrHarmless) {
  const auto policy = Make(Spec(GetParam()));
  Turmoil turmoil(4);
  for (int step = 0; step < 60; ++step) turmoil.Step(*policy);
  const Json saved = policy->Save();
  int refused = 0;
  const auto try_all = [&](const auto& self, const Json::json_pointer& at) -> void {
    for (const Json& other : {Json(), Json(-1), Json("x"), Json::array(), Json::object()}) {
      Json damaged = saved;
      damaged[at] = other;
      auto restored = RestorePolicy(Spec(GetParam()), damaged);
      if (!restored.ok()) {
        ++refused;
        EXPECT_FALSE(restored.error().message.empty());
        continue;
      }
      Turmoil more(5);
      for (int step = 0; step < 20; ++step) more.Step(*restored.value());
    }
    const Json& part = saved[at];
    if (part.is_object())
      for (const auto& [key, value] : part.items()) self(self, at / key);
    else if (part.is_array())
      for (std::size_t i = 0; i < part.size(); ++i) self(self, at / i);
  };
  for (const auto& [key, value] : saved.items()) try_all(try_all, Json::json_pointer("/" + key));
  EXPECT_GT(refused, 100);
}

TEST_P(EveryPolicyTest, OneBatchSizeIsEnough) {
  PolicySpec spec = Spec(GetParam());
  spec.batch_sizes = {24};
  const auto policy = Make(spec);
  for (int i = 0; i < 50; ++i) {
    const Choice choice = policy->Choose({.recurrence = i, .gpu_model = "V100"});
    ASSERT_EQ(choice.batch_size, 24);
    policy->Observe({.run = {.recurrence = i, .gpu_model = "V100", .batch_size = 24},
                     .converged = i % 5 != 0,
                     .epochs = 5 + i % 3,
                     .cost = Joules(50),
                     .recurrence_cost = Joules(50),
                     .epoch_cost = Joules(10)});
  }
  EXPECT_EQ(policy->Beliefs("V100").size(), 1);
}

// Energy can be reported as 0 J: a simulated node that was stopped, a counter that does not move.
TEST_P(EveryPolicyTest, SurvivesRunsThatCostNothing) {
  const auto policy = Make(Spec(GetParam()));
  for (int i = 0; i < 50; ++i) {
    const Choice choice = policy->Choose({.recurrence = i, .gpu_model = "V100"});
    const PlannedRun run{
        .recurrence = i, .gpu_model = "V100", .batch_size = choice.batch_size, .role = choice.role};
    ASSERT_GE(policy->EpochBudget(run, Joules(0)), 0);
    policy->Observe({.run = run, .converged = true, .epochs = 5, .epoch_cost = Joules(0)});
    ASSERT_TRUE(RestorePolicy(Spec(GetParam()), policy->Save()).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicyTest,
                         ::testing::Values("default", "zeus", "knowledge_gradient"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(PolicyTest, NamesAreThoseThatCanBeMade) {
  EXPECT_EQ(PolicyNames(), (std::vector<std::string>{"default", "zeus", "knowledge_gradient"}));
  for (const std::string& name : PolicyNames()) EXPECT_NE(Make(Spec(name)), nullptr);
}

TEST(PolicyTest, TheDefaultPolicyNeverLeavesTheDefault) {
  const auto policy = Make(Spec("default"));
  Turmoil turmoil(6);
  for (int i = 0; i < 100; ++i) {
    turmoil.Step(*policy);
    EXPECT_EQ(policy->Choose({.recurrence = i}),
              (Choice{.batch_size = 24, .role = RunRole::kExploiting}));
  }
  EXPECT_EQ(policy->EpochBudget({.recurrence = 9, .batch_size = 24}, Joules(1e12)), 20);
}

TEST(PolicyTest, SpecsThatMakeNoSenseAreRefusedByField) {
  const std::vector<std::pair<std::string, std::function<void(PolicySpec&)>>> mistakes = {
      {"policy", [](PolicySpec& spec) { spec.name = "magic"; }},
      {"batch_sizes", [](PolicySpec& spec) { spec.batch_sizes.clear(); }},
      {"batch_sizes",
       [](PolicySpec& spec) {
         spec.batch_sizes = {24, 8};
       }},
      {"batch_sizes",
       [](PolicySpec& spec) {
         spec.batch_sizes = {24, 24};
       }},
      {"batch_sizes",
       [](PolicySpec& spec) {
         spec.batch_sizes = {0, 24};
       }},
      {"default_batch_size", [](PolicySpec& spec) { spec.default_batch_size = 9; }},
      {"max_epochs", [](PolicySpec& spec) { spec.max_epochs = 0; }},
      {"beta", [](PolicySpec& spec) { spec.beta = 0; }},
      {"beta", [](PolicySpec& spec) { spec.beta = std::nan(""); }},
      {"pruning_rounds", [](PolicySpec& spec) { spec.pruning_rounds = -1; }},
      {"window", [](PolicySpec& spec) { spec.window = -1; }},
      {"explorations", [](PolicySpec& spec) { spec.explorations = -1; }},
      {"prior_mean", [](PolicySpec& spec) { spec.prior_mean = HUGE_VAL; }},
      {"prior_precision", [](PolicySpec& spec) { spec.prior_precision = -1; }},
  };
  for (const auto& [field, make] : mistakes) {
    PolicySpec spec = Spec("zeus");
    make(spec);
    const auto made = MakePolicy(spec);
    ASSERT_FALSE(made.ok()) << field;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(made.error().message.starts_with(field)) << made.error().message;
  }
}

TEST(PolicyTest, StateOfAnotherFormatOrPolicyIsRefused) {
  Json state = Make(Spec("zeus"))->Save();
  EXPECT_EQ(RestorePolicy(Spec("knowledge_gradient"), state).error().code, ErrorCode::kConflict);
  state["format"] = "zeus.batch_size_policy/2";
  EXPECT_EQ(RestorePolicy(Spec("zeus"), state).error().code, ErrorCode::kNotSupported);
  EXPECT_FALSE(RestorePolicy(Spec("zeus"), Json()).ok());
  EXPECT_FALSE(RestorePolicy(Spec("zeus"), Json::array()).ok());
}

}  // namespace policy_test
}  // namespace zeus
