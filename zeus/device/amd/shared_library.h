#pragma once

#include <string>
#include <utility>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::amd {

// A vendor library opened at run time. It stays loaded until the process ends: libraries that
// keep threads or exit handlers do not survive being closed.
class SharedLibrary {
 public:
  // The first of `names` that opens. kNotFound when none exists, kUnavailable when one exists but
  // cannot be used.
  static Result<SharedLibrary> Open(const std::vector<std::string>& names);

  // A function, or null. The caller knows its type.
  template <class Function>
  void Find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(Symbol(symbol));
  }

  // The name under which it was opened.
  const std::string& name() const { return name_; }

 private:
  SharedLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}

  void* Symbol(const char* symbol) const;

  std::string name_;
  void* handle_;
};

}  // namespace zeus::amd
