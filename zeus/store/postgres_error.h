#pragma once

#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/store/sql_connection.h"

// What PostgreSQL's error codes mean for us (its manual, appendix A).
namespace zeus {

struct PostgresFailure {
  SqlTrouble trouble = SqlTrouble::kOther;
  Error error;
};

// `state` is the five characters of SQLSTATE, `message` the server's own first line.
PostgresFailure FailureOf(std::string_view state, std::string_view message,
                          const std::string& server);

// No session could be had; the server gives no code then, only text.
Error ConnectFailure(std::string_view message, const std::string& server);

// kInvalidArgument when libpq would take a part of the password for a host, and print it.
Status CheckPostgresUrl(const std::string& url);

}  // namespace zeus
