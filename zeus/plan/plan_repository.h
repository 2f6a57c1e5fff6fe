#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/plan/plan_service.h"

namespace zeus {

// Returns the spec if it is valid; else kInvalidArgument, which names the field (as in JSON).
Result<PlanSpec> Checked(PlanSpec spec);

// Returns the problem of one iteration; kInvalidArgument when the profile lacks something that the
// schedule needs.
Result<pipeline::Problem> ToProblem(const PlanSpec& spec);

// Returns Ok when both specs are the same; else kConflict, which names the fields that differ.
Status CheckSame(const PlanSpec& asked, const PlanSpec& stored);

// Field names are those of docs/formats.md. PlanSpecFromJson() refuses unknown fields, so that
// misspelt ones are noticed, and gives absent ones their default.
Json ToJson(const PlanSpec& spec);
Result<PlanSpec> PlanSpecFromJson(const Json& json);

// The stored state of a plan besides its spec. The plan itself follows from both and is not stored.
struct PlanRecord {
  std::string id{};
  // A random number that distinguishes a plan from a later one under the same id, after it was
  // deleted.
  std::uint64_t incarnation = 0;
  WallTime created_at{};
  std::int64_t revision = 1;  // Grows with every change.
  std::int64_t version = 1;
  std::optional<Seconds> pace{};

  friend bool operator==(const PlanRecord&, const PlanRecord&) = default;
};

// Stores plans. A change is on disk when the call returns Ok. Thread-safe; several processes may
// share one database. Errors of the database are kUnavailable (try again) or kInternal.
class PlanRepository {
 public:
  virtual ~PlanRepository() = default;

  // Returns kConflict when there is a plan with this id.
  virtual Status Insert(const PlanRecord& record, const PlanSpec& spec) = 0;
  // Stores version and pace of the record under the next revision. Returns false, and changes
  // nothing, if the stored record has changed since `record` was read. Returns kNotFound when the
  // plan was deleted, even if there is a new one with the same id.
  virtual Result<bool> Update(const PlanRecord& record) = 0;
  // Delete() and Find() return kNotFound when there is no plan with this id.
  virtual Status Delete(const std::string& id) = 0;
  virtual Result<PlanRecord> Find(const std::string& id) = 0;
  // Returns kNotFound also when the plan of the record was deleted and replaced by a new one.
  virtual Result<PlanSpec> FindSpec(const PlanRecord& record) = 0;
  // Counts the plans of a name space (identifier.h).
  virtual Result<std::int64_t> Count(const std::string& name_space) = 0;
  // Returns ids greater than `after`, ascending, at most `limit`.
  virtual Result<std::vector<std::string>> List(const std::string& after, int limit) = 0;
};

// Keeps plans in memory, for training without a server and for tests. Thread-safe.
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

  // Returns nullptr when the plan was deleted, even if there is a new one with the same id. The
  // caller holds mutex_.
  Entry* FindSame(const PlanRecord& record);

  std::mutex mutex_;
  std::map<std::string, Entry> entries_{};  // Guarded by mutex_.
};

}  // namespace zeus
