#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/plan/plan_service.h"

namespace zeus {

// What is kept of a plan besides its spec. The plan itself follows from both, so it is not kept.
struct PlanRecord {
  std::string id{};
  // Drawn when it was made: tells a plan from one that was deleted and made anew under its id.
  std::uint64_t incarnation = 0;
  WallTime created_at{};
  std::int64_t revision = 1;  // Grows with every change.
  std::int64_t version = 1;
  std::optional<Seconds> pace{};

  friend bool operator==(const PlanRecord&, const PlanRecord&) = default;
};

// Where plans live. What was answered with Ok is on disk. Thread-safe; several processes may share
// one database. Errors of the database are kUnavailable (try again) or kInternal.
class PlanRepository {
 public:
  virtual ~PlanRepository() = default;

  // kConflict when there is a plan of this id.
  virtual Status Insert(const PlanRecord& record, const PlanSpec& spec) = 0;
  // Version and pace of the record, and the next revision, unless somebody has changed it since
  // `record` was read: false then, and nothing is done. kNotFound when it is gone, or made anew.
  virtual Result<bool> Update(const PlanRecord& record) = 0;
  virtual Status Delete(const std::string& id) = 0;  // kNotFound.

  virtual Result<PlanRecord> Find(const std::string& id) = 0;  // kNotFound.
  // kNotFound, too, when it was made anew meanwhile.
  virtual Result<PlanSpec> FindSpec(const PlanRecord& record) = 0;
  // Counts the plans of a name space (identifier.h).
  virtual Result<std::int64_t> Count(const std::string& name_space) = 0;
  // Ids greater than `after`, ascending, at most `limit`.
  virtual Result<std::vector<std::string>> List(const std::string& after, int limit) = 0;
};

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
