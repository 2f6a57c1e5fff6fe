#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus::fleet {

// The state of a node as one look found it.
struct NodeReport {
  std::string host{};
  std::string model{};  // "8 × NVIDIA A100"; of several models the first.
  std::size_t gpus = 0;
  Watts power{};                             // All devices count.
  Watts idle{};                              // Drawn by GPUs that do nothing.
  Watts above{};                             // Drawn above the best known limit by GPUs that work.
  std::optional<Celsius> temperature{};      // The hottest GPU has it.
  std::vector<std::string> faults{};         // In words.
  std::vector<std::optional<Watts>> past{};  // Steps before this look; used for a node's first one.
};

// All nodes that are watched, with their power over the last minutes in bounded memory.
// Thread-safe; the clock must outlive it.
class FleetTable {
 public:
  static constexpr std::size_t kPast = 60;          // Steps of a node's past.
  static constexpr std::size_t kMostNodes = 20000;  // Further ones are not taken.

  explicit FleetTable(const Clock& clock) : clock_(clock) {}

  // Makes a node known. `url` is where its own page is; empty where nobody knows.
  void Add(const std::string& name, const std::string& url);
  void Report(const std::string& name, const NodeReport& report);
  // The node could not be looked at. Its numbers of before stay, with their age.
  void Fail(const std::string& name, const std::string& why);

  // GET /v1/fleet (docs/formats.md), with the past of every node or without.
  enum class Past { kIncluded, kOmitted };
  std::string Document(Past past) const;

 private:
  struct Node {
    std::string url{};
    std::optional<NodeReport> report{};
    TimePoint reported_at{};
    std::string trouble{};  // Why the latest look failed; empty when it did not.
    std::deque<std::optional<Watts>> past{};
  };

  static void Append(const std::string& name, const Node& node, TimePoint now, Past past,
                     std::string& text);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Node> nodes_{};  // Guarded by mutex_.
};

}  // namespace zeus::fleet
