#pragma once

#include <cstdlib>
#include <string>
#include <utility>

namespace zeus::testing {

// An environment variable of this process that is set for the life of the object and unset after
// it. For libraries that read the environment themselves; not while other threads run.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~ScopedVariable() { ::unsetenv(name_.c_str()); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const std::string name_;
};

}  // namespace zeus::testing
