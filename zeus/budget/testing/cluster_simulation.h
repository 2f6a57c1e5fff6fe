#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/budget/grant_book.h"
#include "zeus/budget/node_lease.h"

namespace zeus::budget {

// The dangers of a simulated cluster, as rates per node or server.
struct Dangers {
  double lost = 0;                              // Probability that a message is lost,
  double doubled = 0;                           // that it comes twice,
  double late = 0;                              // that it takes up to 40 s instead of 30 ms.
  Seconds between_partitions = Seconds::max();  // Mean time; a partition takes up to a minute.
  Seconds between_node_crashes = Seconds::max();
  double reboots = 0;        // Share of a node's crashes that lose its state and its caps.
  double crash_at_step = 0;  // Probability of a crash of the server at each of its steps.
  double store_fails = 0;    // Probability that a transaction fails; half of them have happened.
  double clock_skew = 0;     // Nodes' clocks run faster or slower by up to this share.
  bool unguarded_nodes = false;  // Some nodes keep their caps for as long as their daemon is dead.
};

// A cluster on a virtual clock: the book on the server's side, nodes whose devices obey after a
// while, and a network between them. After every event an auditor that knows the truth looks for
// watts that should not be there:
//
// - The caps that hold on the devices of a domain never grow while they exceed its budget, but for
//   grants that were given before it fell and are still valid. So they are above it only after the
//   budget has fallen, and on their way down.
// - A device never holds more than the server has committed for it.
// - A budget that has fallen is kept after `Options::soon`, or, where something went wrong,
//   after the validity of a grant; unless nodes that cannot be reached leave no room for it.
// One owner.
class ClusterSimulation {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::size_t racks = 2;
    std::size_t nodes = 4;
    std::size_t gpus = 2;  // In each node.
    Seconds duration{200};
    Dangers dangers{};
    Seconds between_budgets{40};
    Seconds soon{5};
    // The power that a device draws under a cap, by its number; the default is the cap itself.
    std::function<Watts(std::size_t device, Watts cap)> draw{};
    // Chooses the wanted caps. The default wants arbitrary ones, above the budget too.
    std::function<void(GrantBook& book, TimePoint now)> choose{};
    // How often ceilings and draws are looked at; sums of caps are after every event. 0: likewise.
    Seconds between_looks{0};
    std::vector<Watts> highest{Watts(300), Watts(400)};  // Limits of devices, node by node in turn.
    GrantBook::Options book{};
  };
  struct Outcome {
    std::vector<std::string> violations{};  // The first ten.
    std::uint64_t events = 0;
    std::uint64_t server_starts = 0;
    std::uint64_t node_starts = 0;
    std::uint64_t raises = 0;  // Devices whose cap rose.
    std::uint64_t budget_falls = 0;
    Seconds slowest_fall{};  // Time until a lower budget held, where nothing went wrong.
    Watts mean_use{};        // Caps as a share of the budget, for tests that want progress.
    double share_used = 0;
    Watts highest_over{};  // Draw above 101 % of the budget, after `soon`.
  };

  explicit ClusterSimulation(Options options);
  ~ClusterSimulation();
  Outcome Run();

 private:
  struct Gpu;
  struct Node;
  struct Event;
  class Auditor;

  void At(Seconds delay, std::function<void()> action);
  void Send(Node& node, std::function<void()> deliver);
  void StartNode(Node& node);
  void CrashNode(Node& node);
  void ReportFrom(Node& node);
  void Receive(const NodeReport& report, Node& node, std::uint64_t start, Seconds sent_at);
  void Apply(Node& node, std::uint64_t order, std::uint64_t number);
  void WatchExpiry(Node& node);
  void StartServer();
  void CrashServer();
  bool MayCrash();
  void StepServer();
  bool Store(const std::vector<StoredNode>& nodes);
  void ChangeBudget();
  void Choose();
  Seconds NodeTime(const Node& node) const;
  double Exponential(Seconds mean);

  Options options_;
  Random random_;
  Seconds now_{1000};
  std::uint64_t order_ = 0;
  std::vector<Event> queue_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<GrantDomain> domains_;
  std::vector<Watts> budgets_;
  std::map<std::string, StoredNode> stored_;
  std::uint64_t incarnation_ = 0;
  std::unique_ptr<GrantBook> book_;
  std::unique_ptr<Auditor> auditor_;
  Outcome outcome_{};
  bool trouble_ = false;
  Seconds trouble_at_{};
};

}  // namespace zeus::budget
