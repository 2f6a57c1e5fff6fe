#include "zeus/store/connection_pool.h"

#include <utility>

namespace zeus {

ConnectionPool::Loan::Loan(ConnectionPool& pool, std::unique_ptr<SqlConnection> connection)
    : pool_(&pool), connection_(std::move(connection)) {}

ConnectionPool::Loan::~Loan() {
  if (connection_) pool_->Return(std::move(connection_));
}

ConnectionPool::ConnectionPool(Opener open, int most) : open_(std::move(open)), most_(most) {}

void ConnectionPool::Add(std::unique_ptr<SqlConnection> connection) {
  const std::lock_guard lock(mutex_);
  ++open_connections_;
  idle_.push_back(std::move(connection));
}

Result<ConnectionPool::Loan> ConnectionPool::Borrow() {
  {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !idle_.empty() || open_connections_ < most_; });
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return Loan(*this, std::move(connection));
    }
    ++open_connections_;
  }
  auto opened = open_();  // May take long; others go on meanwhile.
  if (opened.ok()) return Loan(*this, std::move(opened).value());
  Forget();
  return std::move(opened).error();
}

void ConnectionPool::Return(std::unique_ptr<SqlConnection> connection) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
  }
  returned_.notify_one();
}

void ConnectionPool::Forget() {
  {
    const std::lock_guard lock(mutex_);
    --open_connections_;
  }
  returned_.notify_one();
}

}  // namespace zeus
