#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "zeus/plan/plan_repository.h"

namespace zeus {

// Plans that live as long as the process: for training without a server, and for tests.
// Thread-safe.
class MemoryPlanRepository final : public PlanRepository {
 public:
  Status Insert(const PlanRecord& record, const PlanSpec& spec) override;
  Result<bool> Update(const PlanRecord& record) override;
  Status Delete(const std::string& id) override;
  Result<PlanRecord> Find(const std::string& id) override;
  Result<PlanSpec> FindSpec(const PlanRecord& record) override;
  Result<std::int64_t> Count(const std::string& name_space) override;
  Result<std::vector<std::string>> List(const std::string& after, int limit) override;

 private:
  struct Entry {
    PlanRecord record{};
    PlanSpec spec{};
  };

  // nullptr when it is gone, or made anew. mutex_ is held.
  Entry* FindSame(const PlanRecord& record);

  std::mutex mutex_;
  std::map<std::string, Entry> entries_{};  // Guarded by mutex_.
};

}  // namespace zeus
