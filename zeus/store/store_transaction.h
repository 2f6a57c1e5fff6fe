#pragma once

#include <optional>

#include "zeus/base/result.h"
#include "zeus/store/parsed_jobs.h"
#include "zeus/store/sql_job_transaction.h"
#include "zeus/store/sql_transaction.h"

namespace zeus {

// One database transaction, and the ways in which changes use it. See SqlTransaction for the order
// of calls. One owner.
class StoreTransaction {
 public:
  using Failure = SqlTransaction::Failure;

  StoreTransaction(SqlConnection& connection, ParsedJobs& parsed)
      : rows_(connection), jobs_(rows_, parsed) {}
  StoreTransaction(const StoreTransaction&) = delete;
  StoreTransaction& operator=(const StoreTransaction&) = delete;

  SqlTransaction& rows() { return rows_; }
  SqlJobTransaction& jobs() { return jobs_; }

  std::optional<Failure> TakeFailure() { return rows_.TakeFailure(); }
  Status Keep() {
    jobs_.Keep();
    return rows_.Keep();
  }
  Status TakeBack() {
    jobs_.TakeBack();
    return rows_.TakeBack();
  }
  // Before the commit.
  Status WriteHeld() { return jobs_.WriteJobs(); }

 private:
  SqlTransaction rows_;
  SqlJobTransaction jobs_;
};

}  // namespace zeus
