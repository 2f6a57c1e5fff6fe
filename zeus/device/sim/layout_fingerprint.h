#pragma once

#include <cstdint>

namespace zeus::sim {

// A number that two programs share if they can share a node: it follows from the version of Zeus,
// from where every part of a node lies in memory, and from the figures of GPU models and workloads,
// to which the state of a GPU refers by index. So the library and the command of different builds
// do not misread each other. Code alone that changes without any of these is not seen.
std::uint64_t LayoutFingerprint();

}  // namespace zeus::sim
