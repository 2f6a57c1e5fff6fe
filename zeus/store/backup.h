#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

// Copies of a database in a file that does not depend on the engine: what was copied from SQLite
// can be restored into PostgreSQL and the other way round. docs/formats.md describes the file.
namespace zeus {

struct BackupSummary {
  std::int64_t schema = 0;  // The version of the schema, which may be older than this program's.
  std::int64_t jobs = 0;
  std::int64_t trials = 0;
  std::int64_t events = 0;
};

// Writes everything that the database of a URL holds at one moment to a file for its owner alone.
// Others may write to the database meanwhile, and do not wait. The file is replaced as a whole or
// not at all. The database is not changed, also when an older program made it. Returns kConflict
// when a newer one did.
Result<BackupSummary> BackUp(const std::string& url, const std::filesystem::path& file,
                             WallTime now);

struct RestoreSummary {
  BackupSummary restored{};
  std::vector<std::string> kept{};  // Jobs that the database had already: they are left alone.
};

// Adds what the file holds and the database of a URL does not, in one transaction: all or nothing.
// The database is created if needed; others may use it meanwhile. A job, plan, pipeline or duel
// that is there already stays as it is. Nodes of a power budget are not restored: a server learns
// what they hold from them. Returns kInvalidArgument for a file that is no backup or not whole,
// kConflict for one of a newer program and when another program added the same job meanwhile.
Result<RestoreSummary> Restore(const std::filesystem::path& file, const std::string& url);

}  // namespace zeus
