#pragma once

#include <memory>
#include <string>

#include "zeus/base/file.h"
#include "zeus/base/result.h"
#include "zeus/colosseum/duel_repository.h"
#include "zeus/job/job_repository.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/plan/session_repository.h"

namespace zeus::budget {
class BudgetRepository;
}

namespace zeus {

enum class RepositoryAccess {
  kWrite,
  kRead,          // Also opens a file that may not be written, or in such a folder.
  kReadExisting,  // As kRead; kNotFound, and no new file, where there is no database.
};

struct RepositoryOptions {
  int most_readers = 8;           // Connections for reading, opened on demand.
  int most_postgres_writers = 4;  // Groups of changes that are committed at the same time.
  RepositoryAccess access = RepositoryAccess::kWrite;
};

// The repositories of one database. Each can be used without the others.
struct Store {
  std::unique_ptr<JobRepository> jobs{};
  std::unique_ptr<PlanRepository> plans{};
  std::unique_ptr<SessionRepository> sessions{};
  std::unique_ptr<colosseum::DuelRepository> duels{};
  // Shared, so that only programs that use it need its header (zeus/budget/budget_repository.h).
  std::shared_ptr<budget::BudgetRepository> budget{};
};

// Opens the database, creates its file if it does not exist, and brings its schema up to date. The
// URL is one of
//   sqlite:///var/lib/zeus/zeus.db   a file by its absolute path, which is not decoded
//   sqlite:zeus.db                   a file relative to the current folder
//   sqlite::memory:                  a database in memory, which ends with the repository
//   postgresql://user:password@host:5432/database?sslmode=…   as libpq understands it
// Returns kInvalidArgument for other URLs and for files of other programs, and kConflict for a
// database that a newer program wrote. No message contains a password.
Result<Store> OpenStore(const std::string& url, const RepositoryOptions& options = {});

// As OpenStore(), for callers that need the jobs alone.
Result<std::unique_ptr<JobRepository>> OpenRepository(const std::string& url,
                                                      const RepositoryOptions& options = {});

// Returns the URL of the user's own file: $XDG_DATA_HOME/zeus/zeus.db, else
// ~/.local/share/zeus/zeus.db. Returns kInvalidArgument for a user without a home.
Result<std::string> DefaultDatabaseUrl(const Environment& environment);

}  // namespace zeus
