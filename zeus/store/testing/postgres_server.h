#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>

#include "zeus/base/result.h"

namespace zeus::testing {

// A PostgreSQL server of its own in a temporary directory, reached through a Unix socket there. As
// root it runs as user postgres, since it refuses to be root. Ends with this object, and with this
// process, however that ends. Start it from the main thread.
class PostgresServer {
 public:
  // With kNo a power failure may cost data, but no crash of the server: for tests that need not
  // wait for the disk.
  enum class Sync { kNo, kYes };

  // kNotFound, with what to install, where there is no PostgreSQL.
  static Result<std::unique_ptr<PostgresServer>> Start(Sync sync);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // The URL of a database; made if `name` is new.
  Result<std::string> Database(const std::string& name);

  // As if the machine had lost its power, but for what the kernel still has to write.
  void Crash();
  Status Restart();

 private:
  PostgresServer(std::filesystem::path programs, std::filesystem::path folder, Sync sync);

  Status Initialise();
  Status Launch();
  std::string Url(const std::string& database) const;

  const std::filesystem::path programs_;
  const std::filesystem::path folder_;
  const Sync sync_;
  pid_t server_ = -1;
};

}  // namespace zeus::testing
