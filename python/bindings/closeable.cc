#include "python/bindings/closeable.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "python/bindings/errors.h"
#include "zeus/base/fork.h"

namespace zeus::python {
namespace {

bool ended = false;

// All open objects in the order of their creation. Never destroyed, because the end of the
// interpreter may still access it.
std::vector<Closeable*>& Open() {
  static auto* const open = new std::vector<Closeable*>();
  return *open;
}

}  // namespace

Closeable::Closeable(const Closeable* upon)
    : upon_(upon), fork_generation_((WatchForks(), ForkGeneration())) {
  Open().push_back(this);
}

Closeable::~Closeable() { std::erase(Open(), this); }

bool Closeable::InForkedChild() const { return ForkGeneration() != fork_generation_; }

void Closeable::Close() {
  if (closed_) return;
  closed_ = true;
  if (InForkedChild()) return Abandon();
  // Closing releases the GIL and so may change the list: the next object is looked up anew each
  // time.
  const auto next = [this]() -> Closeable* {
    const auto& open = Open();
    const auto found = std::find_if(open.rbegin(), open.rend(), [this](const Closeable* other) {
      return other->upon_ == this && !other->closed_;
    });
    return found == open.rend() ? nullptr : *found;
  };
  while (Closeable* dependent = next()) dependent->Close();
  DoClose();
}

void Closeable::CheckOpen(const char* what) const {
  if (InForkedChild())
    throw Failure({ErrorCode::kConflict,
                   fmt::format("this {} belongs to the process that was forked: make one of your "
                               "own here",
                               what)});
  if (closed_)
    throw Failure({ErrorCode::kConflict, fmt::format("this {} is closed: make another one", what)});
}

void Closeable::CloseNewerThan(const Closeable& first) {
  // Closing may change the list: the newest object is looked up anew each time.
  const auto newest = [&first]() -> Closeable* {
    const auto& open = Open();
    const auto begin = std::find(open.begin(), open.end(), &first);
    for (auto next = open.end(); next != begin && --next != begin;)
      if (!(*next)->closed_) return *next;
    return nullptr;
  };
  while (Closeable* next = newest()) next->Close();
}

bool Closeable::Ended() { return ended; }

void Closeable::CloseAll() {
  ended = true;
  while (!Open().empty()) {
    Closeable* newest = Open().back();
    Open().pop_back();
    newest->Close();
  }
}

}  // namespace zeus::python
