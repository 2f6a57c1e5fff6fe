#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/plan/plan_service.h"

namespace zeus::testing {

// A plan service with predictable plans: forward runs at the first point of a stage's profile (the
// highest clock) and backward at the second; for a straggler's pace, both run at the third. The
// schedule of the stage is forward, backward for each microbatch.
class FixedPlans final : public PlanService {
 public:
  Result<CurrentPlan> Submit(const PlanSpec& spec) override {
    spec_ = spec;
    ++submitted;
    return Make(std::nullopt);
  }
  Result<CurrentPlan> Get(const std::string& id) override {
    if (fails) return Fail();
    if (!current_ || current_->id != id) return Error{ErrorCode::kNotFound, "no such plan"};
    return *current_;
  }
  Result<PlanFrontier> GetFrontier(const std::string&) override { return PlanFrontier{}; }
  Result<pipeline::PipelinePlan> PlanFor(const std::string&, Seconds) override {
    return current_->plan;
  }
  Result<CurrentPlan> ReportPace(const std::string&, std::optional<Seconds> pace) override {
    if (fails) return Fail();
    paces.push_back(pace);
    return Make(pace);
  }
  Result<std::vector<std::string>> List(const std::string&, int) override {
    return std::vector<std::string>{};
  }
  Status Delete(const std::string&) override { return Ok(); }

  // Changes the plan as a report of another rank does.
  void Change(std::optional<Seconds> pace) { (void)Make(pace); }

  int submitted = 0;
  std::vector<std::optional<Seconds>> paces{};
  bool fails = false;
  int failures = 0;
  std::function<void()> before_failure{};  // Called before a failure, to let time pass.

 private:
  Error Fail() {
    ++failures;
    if (before_failure) before_failure();
    return {ErrorCode::kUnavailable, "the server is away"};
  }

  CurrentPlan Make(std::optional<Seconds> pace) {
    CurrentPlan next{.id = "job", .version = current_ ? current_->version + 1 : 1, .pace = pace};
    for (int stage = 0; stage < spec_.profile.stages; ++stage) {
      next.plan.stages.emplace_back();
      for (int i = 0; i < spec_.microbatches; ++i)
        for (const char* const name : {"forward", "backward"}) {
          const auto& points = spec_.profile.Find(stage, name)->points;
          const std::size_t unpaced = std::string(name) == "forward" ? 0 : 1;
          const auto& point = points[pace ? 2 : unpaced];
          next.plan.stages.back().push_back(
              {.instruction = name, .microbatch = i, .clock = point.clock, .time = point.time});
          next.plan.time += point.time;
        }
    }
    next.baseline_time = next.plan.time;
    current_ = next;
    return next;
  }

  PlanSpec spec_{};
  std::optional<CurrentPlan> current_{};
};

}  // namespace zeus::testing
