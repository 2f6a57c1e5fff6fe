#pragma once

#include <memory>
#include <string>

#include "zeus/base/result.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

enum class ConnectionUse {
  kRead,   // The database must exist, and may be one that this process may not write.
  kWrite,  // An SQLite file is created.
};

// Opens one connection to the database of a URL (open_repository.h) and leaves its schema alone.
// kInvalidArgument for a database in memory, which ends with its process; kNotFound when there is
// none to read.
Result<std::unique_ptr<SqlConnection>> OpenConnection(const std::string& url, ConnectionUse use);

}  // namespace zeus
