#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/process.h"
#include "zeus/base/result.h"

namespace zeus::daemon {

// Watches processes that hold leases, by their pidfds, and calls `ended` with the key of the watch
// within milliseconds after the end of its process. Thousands of watches cost one thread and no
// polling. Thread-safe; `ended` is called on the thread of the watch and may call Add() and
// Remove().
class HolderWatch {
 public:
  using Ended = std::function<void(const std::string& key)>;

  static Result<std::unique_ptr<HolderWatch>> Start(Ended ended);
  ~HolderWatch();
  HolderWatch(const HolderWatch&) = delete;
  HolderWatch& operator=(const HolderWatch&) = delete;

  // A process that has ended already is reported at once. One process may be watched under many
  // keys. kUnavailable when the system has no descriptor left.
  Status Add(const std::string& key, std::shared_ptr<FileDescriptor> pidfd);
  void Remove(const std::string& key);
  std::size_t size() const;

 private:
  class State;
  explicit HolderWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A pidfd of exactly this process: kNotFound when it has ended or its number belongs to another
// one.
Result<std::shared_ptr<FileDescriptor>> OpenPidfd(const ProcessIdentity& process);

}  // namespace zeus::daemon
