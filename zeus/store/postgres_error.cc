#include "zeus/store/postgres_error.h"

#include <libpq-fe.h>

#include <algorithm>
#include <memory>

#include "zeus/base/text.h"

namespace zeus {
namespace {

struct PostgresMeaning {
  std::string_view state;  // Or the class, its first two characters.
  SqlTrouble trouble;
  ErrorCode code;
  const char* advice;
};

// The first that matches.
constexpr PostgresMeaning kMeanings[] = {
    {"40", SqlTrouble::kTransactionLost, ErrorCode::kUnavailable,
     "another server was in the way: try again"},
    {"55P03", SqlTrouble::kOther, ErrorCode::kUnavailable,
     "another server holds the job: try again"},
    {"08", SqlTrouble::kTransactionLost, ErrorCode::kUnavailable,
     "the connection was lost: try again"},
    {"57P0", SqlTrouble::kTransactionLost, ErrorCode::kUnavailable,
     "the database is shutting down or starting: try again"},
    {"25P03", SqlTrouble::kTransactionLost, ErrorCode::kUnavailable,
     "this process was stopped for so long that the database gave up on it: try again"},
    {"57", SqlTrouble::kOther, ErrorCode::kUnavailable, "the database cut it short: try again"},
    {"53", SqlTrouble::kOther, ErrorCode::kUnavailable,
     "the database has no room (disk, memory or connections): make some and try again"},
    {"58", SqlTrouble::kOther, ErrorCode::kUnavailable,
     "the disk of the database does not answer as it should: see its log"},
    {"23", SqlTrouble::kOther, ErrorCode::kConflict, "at odds with what is stored"},
    {"22", SqlTrouble::kOther, ErrorCode::kInvalidArgument, "the database cannot hold a value"},
    {"25006", SqlTrouble::kOther, ErrorCode::kUnavailable,
     "the database only reads: name the primary, not a standby"},
    {"28", SqlTrouble::kOther, ErrorCode::kPermissionDenied,
     "the database does not let us in: see user and password of the URL, and pg_hba.conf"},
    {"42501", SqlTrouble::kOther, ErrorCode::kPermissionDenied,
     "the user of the URL needs CREATE on the schema and all rights on its tables"},
    {"42P07", SqlTrouble::kOther, ErrorCode::kConflict,
     "there are tables of another program: use a database of its own"},
};
constexpr PostgresMeaning kUnknown = {"", SqlTrouble::kOther, ErrorCode::kInternal,
                                      "the database does not understand us"};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string FirstLine(std::string_view text) {
  return Printable(Trim(text.substr(0, text.find('\n'))));
}

}  // namespace

PostgresFailure FailureOf(std::string_view state, std::string_view message,
                          const std::string& server) {
  const auto* found = std::ranges::find_if(
      kMeanings, [&](const PostgresMeaning& meaning) { return state.starts_with(meaning.state); });
  const PostgresMeaning& meaning = found == std::end(kMeanings) ? kUnknown : *found;
  return {meaning.trouble,
          Error{meaning.code, server + ": " + meaning.advice + " (" + FirstLine(message) + ")"}};
}

Error ConnectFailure(std::string_view message, const std::string& server) {
  const auto failure = [&](ErrorCode code, const std::string& advice) {
    return Error{code, server + ": " + advice + " (" + FirstLine(message) + ")"};
  };
  if (Contains(message, "authentication failed") || Contains(message, "no password supplied") ||
      Contains(message, "pg_hba.conf") || Contains(message, "role \""))
    return failure(ErrorCode::kPermissionDenied,
                   "the database does not let us in: see user and password of the URL");
  if (Contains(message, "database \"") && Contains(message, "does not exist"))
    return failure(ErrorCode::kNotFound, "there is no such database: make it with createdb");
  return failure(ErrorCode::kUnavailable, "cannot connect: is the database running?");
}

Status CheckPostgresUrl(const std::string& url) {
  const std::size_t start = url.find("://") + 3;
  const std::string authority = url.substr(start, url.find_first_of("/?", start) - start);
  // libpq's own words would quote what it could not read. So would ours: neither is shown.
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      PQconninfoParse(url.c_str(), nullptr), PQconninfoFree);
  if (parsed && std::ranges::count(authority, '@') <= 1) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               "the postgresql:// URL cannot be read: it is "
               "postgresql://user:password@host:port/database, and special characters in the "
               "password are written as %40 for @, %2F for /, %25 for %"};
}

}  // namespace zeus
