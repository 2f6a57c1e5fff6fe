#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/budget/messages.h"

// The book of all grants, and of what may still be in force of them. Watts are lent: every grant
// ends by itself. The book knows no socket, clock or database.
//
// It keeps one promise: in every domain the watts that nodes may hold never exceed the budget by
// anything the book does. For each device it keeps a ceiling, the most that the device may be
// capped at by any message that is, or may still be, under way. The ceilings are what is committed.
// A cap is therefore lowered at once, and raised only into room that a confirmation or an expiry
// has made. A ceiling that rises is stored before the first message says so; a server that starts
// again takes the stored ceilings for grants of that moment.
namespace zeus::budget {

// A part of the power distribution. The first one is the root; a parent stands before its children.
struct GrantDomain {
  std::string name{};
  std::optional<std::size_t> parent{};
};

// The part of a node that outlasts the server.
struct StoredDevice {
  std::string id{};
  std::string model{};
  Watts lowest{};
  Watts highest{};
  Watts ceiling{};
  Watts fallback{};

  friend bool operator==(const StoredDevice&, const StoredDevice&) = default;
};
struct StoredNode {
  std::string name{};
  bool guarded = false;
  std::vector<StoredDevice> devices{};

  friend bool operator==(const StoredNode&, const StoredNode&) = default;
};

// One owner.
class GrantBook {
 public:
  struct Options {
    Seconds valid{20};
    // The server takes a grant for expired so much later than `valid` after it gave it: the time
    // until a node has noticed and its devices obey, and the drift of its clock.
    Seconds margin{3};
    Seconds next_report{2};
    Seconds silent_after{5};  // A node that has not reported for so long is silent.
    // The number of this start of the server, which grows with every start: grants of a later
    // start are newer.
    std::uint64_t incarnation = 1;
    // The cap of a device once its grant has expired; the default is the device's lowest limit.
    std::function<Watts(const std::string& node, const DeviceReport&)> fallback{};
  };

  // `domains` has at least the root.
  GrantBook(std::vector<GrantDomain> domains, Options options);

  // A node that is to come. Until it reports, `watts` are committed for it.
  void Expect(const std::string& node, std::size_t domain, Watts watts);
  // A node of an earlier start, before the first report.
  void Restore(const StoredNode& stored, std::size_t domain, TimePoint now);
  // Removes a node that no longer exists; an operator knows that it is switched off.
  bool Forget(const std::string& node);

  // The watts of every domain that may be committed from now on. Caps that exceed them are lowered
  // by the next plan, in proportion to what they are above the lowest limits.
  void SetLimits(std::vector<Watts> limits);
  // The wanted cap of a device; a device that nothing is wanted for gets its fallback.
  void Want(const std::string& node, std::string_view device, Watts cap);
  // The most that a device is expected to draw at whatever cap. A cap above it takes no more of the
  // budget than this. Without it, and as long as its node is silent, a device takes its whole cap,
  // and caps alone keep the promise.
  void ExpectDraw(const std::string& node, std::string_view device, std::optional<Watts> most);

  // Takes note of a report. False for one that is older than the newest one of its node: then only
  // its confirmation counts. `domain` is that of a node that was not known.
  bool Hear(const NodeReport& report, std::size_t domain, TimePoint now);
  // The grant that answers a report of this node; nullopt before the first plan that knows it, and
  // before its first report.
  std::optional<Grant> Answer(const std::string& node, TimePoint now);

  // The next step towards the wanted caps.
  struct Plan {
    std::vector<StoredNode> to_store{};  // To be stored, all or none, before Adopt().
    struct Change {
      std::string node{};
      std::vector<Watts> caps{};  // In the order of the node's devices.
    };
    std::vector<Change> changes{};
  };
  enum class Raises { kAllowed, kNone };  // kNone: when nothing can be stored.
  Plan MakePlan(TimePoint now, Raises raises = Raises::kAllowed);
  void Adopt(const Plan& plan, TimePoint now);
  // Storing has failed, and perhaps happened all the same: what is stored is not known any more.
  void NoteFailedStore(const Plan& plan);

  // The watts that may be in force.
  Watts committed(std::size_t domain, TimePoint now);
  Watts CommittedOf(const std::string& node, TimePoint now);
  Watts limit(std::size_t domain) const { return limits_[domain]; }
  const std::vector<GrantDomain>& domains() const { return domains_; }
  const Options& options() const { return options_; }

  struct DeviceView {
    std::string id{};
    std::string model{};
    Watts lowest{};
    Watts highest{};
    Watts ceiling{};
    Watts fallback{};
    Watts wanted{};
    Watts authorised{};  // The cap in the next answer.
    std::optional<Watts> power{};
    std::optional<double> utilization{};
  };
  struct NodeView {
    std::string name{};
    std::size_t domain = 0;
    bool heard = false;   // Since the start of the server.
    bool silent = false;  // Not within silent_after.
    bool guarded = false;
    Watts committed{};
    std::vector<DeviceView> devices{};
    const std::vector<JobReport>* jobs = nullptr;
  };
  std::vector<NodeView> View(TimePoint now);
  bool IsIn(std::size_t domain, std::size_t ancestor) const;

 private:
  struct Device {
    std::string id{};
    std::string model{};
    Watts lowest{};
    Watts highest{};
    Watts fallback{};           // In the grants of this server.
    Watts reported{};           // Cap of the newest report.
    Watts reported_fallback{};  // The cap after that one has expired.
    Watts held{};               // The most of all grants that are not in Node::issued.
    Watts authorised{};         // The cap in the next answer.
    Watts wanted{};
    Watts fitted{};   // `wanted`, as far as the limits allow it.
    Watts ceiling{};  // The most that may be in force.
    Watts stored{};   // The ceiling that a later start of the server would know.
    std::optional<Watts> power{};
    std::optional<double> utilization{};
    std::optional<Watts> most{};  // That it is expected to draw.
    bool counts_most = false;     // Not while its node is silent.
    // The part of the budget that a cap takes.
    Watts Taken(Watts cap) const { return counts_most && most ? std::min(cap, *most) : cap; }
  };
  // A grant that may be in force or still arrive.
  struct Issued {
    std::uint64_t number = 0;
    TimePoint expires{};
    std::vector<Watts> caps{};
  };
  struct Node {
    std::size_t domain = 0;
    bool heard = false;
    bool guarded = false;
    bool stored_guarded = false;
    Watts expected{};  // Committed before the first report.
    std::string session{};
    std::uint64_t sequence = 0;
    TimePoint heard_at{};
    TimePoint reported_until{};
    TimePoint held_until{};
    std::uint64_t held_number = 0;  // The newest grant in `held`.
    std::vector<Device> devices{};
    std::vector<Issued> issued{};  // In the order of their numbers.
    std::vector<JobReport> jobs{};
    Watts committed{};
    TimePoint next_expiry = TimePoint::max();
  };
  using Nodes = std::map<std::string, Node, std::less<>>;

  Node& NodeOf(const std::string& name, std::size_t domain);
  void TakeDevices(const std::string& name, Node& node, const NodeReport& report);
  static void Supersede(Node& node, std::uint64_t applied);
  void Refresh(Node& node, TimePoint now);
  static Watts CeilingWithoutAnswer(const Node& node, std::size_t device, TimePoint now);
  void Expire(TimePoint now);
  bool HasBecomeSilent(const Node& node, TimePoint now) const;
  void Commit(Node& node, Watts watts);
  static Watts Room(const std::vector<GrantDomain>& domains, const std::vector<Watts>& limits,
                    const std::vector<Watts>& committed, std::size_t domain);
  void Fit(TimePoint now);
  void FitDomain(std::size_t domain, TimePoint now);
  static Watts Raised(const Device& device, Watts room);
  std::vector<Watts> NextCaps(const Node& node, Raises raises, std::vector<Watts>& committed,
                              TimePoint now) const;
  static void AddToStore(const std::string& name, const Node& node, const std::vector<Watts>& caps,
                         std::vector<StoredNode>& raised, std::vector<StoredNode>& lowered);
  bool IsActive(const Node& node, TimePoint now) const {
    return node.heard && now - node.heard_at <= options_.silent_after;
  }
  TimePoint ExpiryOfGrantAt(TimePoint now) const { return now + options_.valid + options_.margin; }

  std::vector<GrantDomain> domains_;
  Options options_;
  std::vector<Watts> limits_;
  std::vector<Watts> committed_;
  Nodes nodes_{};
  std::uint64_t next_number_;
  bool planned_ = false;          // Caps of an earlier start may be too much by now.
  std::string first_to_raise_{};  // Where raising begins, so that no node always comes last.
};

}  // namespace zeus::budget
