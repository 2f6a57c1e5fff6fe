#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

// Connections to one database, opened when they are needed and kept. Thread-safe. Must outlive what
// it lends.
class ConnectionPool {
 public:
  using Opener = std::function<Result<std::unique_ptr<SqlConnection>>()>;

  // A connection to use alone until this is destroyed.
  class Loan {
   public:
    Loan(ConnectionPool& pool, std::unique_ptr<SqlConnection> connection);
    ~Loan();
    Loan(Loan&&) = default;
    Loan& operator=(Loan&&) = delete;

    SqlConnection& operator*() const { return *connection_; }
    SqlConnection* operator->() const { return connection_.get(); }

   private:
    ConnectionPool* pool_;
    std::unique_ptr<SqlConnection> connection_;
  };

  ConnectionPool(Opener open, int most);

  // Puts a connection in that is open already.
  void Add(std::unique_ptr<SqlConnection> connection);

  // Waits for a connection if `most` are lent.
  Result<Loan> Borrow();

 private:
  void Return(std::unique_ptr<SqlConnection> connection);
  void Forget();

  const Opener open_;
  const int most_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<SqlConnection>> idle_;  // Guarded by mutex_.
  int open_connections_ = 0;                          // Guarded by mutex_; lent and idle.
};

}  // namespace zeus
