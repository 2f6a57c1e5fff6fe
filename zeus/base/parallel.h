#pragma once

#include <cstddef>
#include <functional>

namespace zeus {

// The number of threads that the machine runs at a time; at least 1.
int MachineThreads();

// Calls `task` once for each index below `count` and returns when all calls have. Up to `threads`
// calls run at a time (the caller's thread among them); which thread takes which index is not
// defined, so tasks write only what is theirs, such as element `index` of a vector, and results do
// not depend on the number of threads. Uses fewer threads when the system
// has no more. An exception of a call is rethrown here once the running calls have ended; the
// remaining indices are skipped.
void ForEachIndex(std::size_t count, int threads, const std::function<void(std::size_t)>& task);

}  // namespace zeus
