#include "zeus/replay/limit_search.h"

namespace zeus::replay {
namespace {

class GreatestLimit final : public LimitSearch {
 public:
  LimitChoice Next(std::size_t, const ReplayArm& arm) const override {
    return {.limit = arm.limits.size() - 1};
  }
  void Begun(std::size_t) override {}
  void StartOver(std::size_t) override {}
};

class BestLimit final : public LimitSearch {
 public:
  LimitChoice Next(std::size_t, const ReplayArm& arm) const override {
    return {.limit = arm.best_limit_index};
  }
  void Begun(std::size_t) override {}
  void StartOver(std::size_t) override {}
};

class JustInTimeSearch final : public LimitSearch {
 public:
  explicit JustInTimeSearch(std::size_t arms) : profiled_(arms) {}

  LimitChoice Next(std::size_t arm_index, const ReplayArm& arm) const override {
    return {.limit = arm.best_limit_index, .profiles = profiled_[arm_index] == 0};
  }
  void Begun(std::size_t arm_index) override { profiled_[arm_index] = 1; }
  void StartOver(std::size_t arms) override { profiled_.assign(arms, 0); }

 private:
  std::vector<char> profiled_;  // One flag per batch size.
};

class OneLimitPerRunSearch final : public LimitSearch {
 public:
  explicit OneLimitPerRunSearch(std::size_t arms) : begun_(arms) {}

  LimitChoice Next(std::size_t arm_index, const ReplayArm& arm) const override {
    const std::size_t begun = begun_[arm_index];
    return {.limit =
                begun < arm.limits.size() ? arm.limits.size() - 1 - begun : arm.best_limit_index};
  }
  void Begun(std::size_t arm_index) override { ++begun_[arm_index]; }
  void StartOver(std::size_t arms) override { begun_.assign(arms, 0); }

 private:
  std::vector<std::size_t> begun_;  // Number of runs per batch size.
};

}  // namespace

std::unique_ptr<LimitSearch> AtGreatestLimit() { return std::make_unique<GreatestLimit>(); }

std::unique_ptr<LimitSearch> AtBestLimit() { return std::make_unique<BestLimit>(); }

std::unique_ptr<LimitSearch> JustInTime(std::size_t arms) {
  return std::make_unique<JustInTimeSearch>(arms);
}

std::unique_ptr<LimitSearch> OneLimitPerRun(std::size_t arms) {
  return std::make_unique<OneLimitPerRunSearch>(arms);
}

}  // namespace zeus::replay
