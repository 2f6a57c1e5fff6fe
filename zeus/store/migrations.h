#pragma once

#include <cstdint>

#include "zeus/base/result.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

// The schema that this program knows: the number of the last migration.
std::int64_t SchemaVersion();

// Brings the database to SchemaVersion(), in one transaction: several servers may start at once.
// kConflict when a newer program has been here, or when there are tables that are not ours.
Status Migrate(SqlConnection& connection);

// For a database that may only be read. kConflict when its schema is not SchemaVersion().
Status CheckSchema(SqlConnection& connection);

}  // namespace zeus
