#pragma once

#include <memory>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/user_files.h"
#include "zeus/job/job_repository.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/plan/session_repository.h"

namespace zeus {

enum class RepositoryAccess {
  kWrite,
  kRead,  // A file that may not be written, or whose folder may not, is opened all the same.
};

struct RepositoryOptions {
  int most_readers = 8;           // Connections for reading; opened when they are needed.
  int most_postgres_writers = 4;  // Groups of changes that are committed at the same time.
  RepositoryAccess access = RepositoryAccess::kWrite;
};

// Everything that is kept, in one database. Each can be used without the others.
struct Store {
  std::unique_ptr<JobRepository> jobs{};
  std::unique_ptr<PlanRepository> plans{};
  std::unique_ptr<SessionRepository> sessions{};
};

// Opens the database, makes its file if there is none, and brings its schema up to date. One of
//   sqlite:///var/lib/zeus/zeus.db   a file, by its absolute path, taken as it is written
//   sqlite:zeus.db                   a file, from the current folder
//   sqlite::memory:                  gone with the repository
//   postgresql://user:password@host:5432/database?sslmode=…   as libpq understands it
// kInvalidArgument for other URLs and for files that are not ours, kConflict for a database that a
// newer program wrote. No message holds a password.
Result<Store> OpenStore(const std::string& url, const RepositoryOptions& options = {});

// Who wants the jobs alone.
Result<std::unique_ptr<JobRepository>> OpenRepository(const std::string& url,
                                                      const RepositoryOptions& options = {});

// The user's own file: $XDG_DATA_HOME/zeus/zeus.db, else ~/.local/share/zeus/zeus.db.
// kInvalidArgument where the user has no home.
Result<std::string> DefaultDatabaseUrl(const Environment& environment);

}  // namespace zeus
