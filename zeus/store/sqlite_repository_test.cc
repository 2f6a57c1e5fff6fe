#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/budget/testing/memory_budget_repository.h"
#include "zeus/colosseum/testing/memory_duel_repository.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/plan/session_repository.h"
#include "zeus/store/open_repository.h"
#include "zeus/store/testing/budget_conformance.h"
#include "zeus/store/testing/duel_conformance.h"
#include "zeus/store/testing/plan_conformance.h"
#include "zeus/store/testing/repository_conformance.h"

namespace zeus::testing {
namespace sqlite_repository_test {

using budget::BudgetConformance;
using colosseum::DuelConformance;
using colosseum::DuelSqlConformance;

RepositoryHarness InAFile() {
  auto folder = std::make_shared<TemporaryDirectory>();
  const std::string url = "sqlite://" + (folder->path() / "zeus.db").string();
  return {folder, [url] { return OpenStore(url); }};
}

RepositoryHarness InMemory() {
  return {nullptr, [] { return OpenStore("sqlite::memory:"); }};
}

const auto kCases =
    ::testing::Values(RepositoryCase{"File", InAFile}, RepositoryCase{"Memory", InMemory, false});

INSTANTIATE_TEST_SUITE_P(Sqlite, RepositoryConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Sqlite, RepositoryConcurrency, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Sqlite, PlanConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Sqlite, SessionConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Sqlite, DuelConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Sqlite, DuelSqlConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Sqlite, BudgetConformance, kCases, NameOfRepositoryCase());

// The repositories in memory keep the same promises.
RepositoryHarness InTheProcess() {
  return {nullptr, []() -> Result<Store> {
            return Store{.plans = std::make_unique<MemoryPlanRepository>(),
                         .sessions = std::make_unique<MemorySessionRepository>(),
                         .duels = std::make_unique<colosseum::testing::MemoryDuelRepository>(),
                         .budget = std::make_unique<budget::testing::MemoryBudgetRepository>()};
          }};
}
const auto kInTheProcess = ::testing::Values(RepositoryCase{"Process", InTheProcess, false});
INSTANTIATE_TEST_SUITE_P(Memory, PlanConformance, kInTheProcess, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Memory, SessionConformance, kInTheProcess, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Memory, DuelConformance, kInTheProcess, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Memory, BudgetConformance, kInTheProcess, NameOfRepositoryCase());

}  // namespace sqlite_repository_test
}  // namespace zeus::testing
