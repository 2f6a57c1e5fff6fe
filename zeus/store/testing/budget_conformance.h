#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "zeus/budget/budget_repository.h"
#include "zeus/store/testing/repository_harness.h"

namespace zeus::budget {

// The promises of every BudgetRepository. Include this in one file of a test program only.
class BudgetConformance : public ::testing::TestWithParam<zeus::testing::RepositoryCase> {
 protected:
  void SetUp() override {
    harness_ = GetParam().make();
    auto opened = harness_.open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::move(opened).value();
  }
  BudgetRepository& budget() { return *store_.budget; }

  static StoredNode ANode(const std::string& name, Watts ceiling) {
    return {.name = name,
            .guarded = true,
            .devices = {{.id = "GPU-" + name,
                         .model = "V100",
                         .lowest = Watts(100),
                         .highest = Watts(300),
                         .ceiling = ceiling,
                         .fallback = Watts(100)}}};
  }
  BudgetRepository::Start Begin() {
    const auto start = budget().Begin();
    EXPECT_TRUE(start.ok()) << (start.ok() ? "" : start.error().message);
    return start.ok() ? start.value() : BudgetRepository::Start{};
  }

  zeus::testing::RepositoryHarness harness_;
  Store store_;
};

TEST_P(BudgetConformance, TheFirstStartFindsNothing) {
  const auto start = Begin();
  EXPECT_EQ(start.incarnation, 1U);
  EXPECT_EQ(start.settings, "");
  EXPECT_TRUE(start.nodes.empty());
}

TEST_P(BudgetConformance, ALaterStartFindsWhatAnEarlierOneHasSaved) {
  const StoredNode kept = ANode("n1", Watts(200.0 / 3));
  ASSERT_TRUE(Begin().incarnation == 1);
  ASSERT_TRUE(budget().Save(1, {.nodes = {ANode("n1", Watts(300)), ANode("n2", Watts(1))}}).ok());
  ASSERT_TRUE(budget().Save(1, {.nodes = {kept}, .removed = {"n2", "n3"}, .settings = "{}"}).ok());
  const auto start = Begin();
  EXPECT_EQ(start.incarnation, 2U);
  EXPECT_EQ(start.settings, "{}");
  ASSERT_EQ(start.nodes.size(), 1U);
  EXPECT_EQ(start.nodes[0], kept);
}

TEST_P(BudgetConformance, ALaterStartShutsAnEarlierOneOut) {
  Begin();
  ASSERT_TRUE(budget().Save(1, {.nodes = {ANode("n1", Watts(200))}}).ok());
  EXPECT_TRUE(budget().CheckCurrent(1).ok());
  Begin();
  const Status late = budget().Save(1, {.nodes = {ANode("n1", Watts(300))}, .settings = "late"});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::kConflict);
  EXPECT_EQ(budget().CheckCurrent(1).error().code, ErrorCode::kConflict);
  EXPECT_TRUE(budget().CheckCurrent(2).ok());
  const auto start = Begin();
  EXPECT_EQ(start.settings, "");
  EXPECT_EQ(start.nodes.at(0).devices.at(0).ceiling, Watts(200));
}

}  // namespace zeus::budget
