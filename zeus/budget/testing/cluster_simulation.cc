#include "zeus/budget/testing/cluster_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace zeus::budget {
namespace {

using namespace std::chrono_literals;

constexpr Watts kSlack{1e-3};
constexpr Seconds kLongestNotice{1};       // Until a node notices an expiry.
constexpr Seconds kLongestObedience{0.3};  // Until a device has obeyed.
constexpr Seconds kServerPeriod{1};
constexpr std::size_t kMostViolations = 10;

TimePoint ToTimePoint(Seconds time) { return TimePoint(time); }

}  // namespace

struct ClusterSimulation::Gpu {
  std::string id{};
  std::size_t number = 0;
  Watts lowest{};
  Watts highest{};
  Watts cap{};     // The one that holds.
  Watts target{};  // The one that is to hold.
  Watts fallback{};
  std::uint64_t order = 0;  // The newest change that it obeyed.
};

struct ClusterSimulation::Node {
  std::string name{};
  std::size_t domain = 0;
  std::size_t index = 0;
  bool guarded = true;
  bool alive = false;
  bool reachable = true;
  double clock_rate = 1;
  std::uint64_t start = 0;  // Number of its daemon.
  std::optional<NodeLease> lease{};
  std::optional<Seconds> deadline{};  // By its own clock.
  std::uint64_t expiry_watch = 0;     // The newest one counts.
  std::uint64_t order = 0;            // The newest change of targets.
  std::uint64_t number = 0;           // The grant that the targets are from; 0: the fallback.
  std::vector<Gpu> gpus{};
};

struct ClusterSimulation::Event {
  Seconds at{};
  std::uint64_t order = 0;
  std::function<void()> action{};

  // For a heap whose first element comes first.
  friend bool operator<(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
};

// Knows what holds on every device, whatever anybody believes.
class ClusterSimulation::Auditor {
 public:
  explicit Auditor(ClusterSimulation& cluster)
      : cluster_(cluster),
        sums_(cluster.domains_.size()),
        fell_at_(cluster.domains_.size(), Seconds(-1e9)),
        above_(cluster.domains_.size(), false) {}

  void BudgetChanged(const std::vector<Watts>& before) {
    for (std::size_t i = 0; i < before.size(); ++i)
      if (cluster_.budgets_[i] < before[i]) {
        fell_at_[i] = cluster_.now_;
        ++cluster_.outcome_.budget_falls;
      }
    earlier_.push_back({.until = cluster_.now_, .budgets = before});
  }

  void Look() {
    const std::vector<Watts> sums = Sums();
    for (std::size_t domain = 0; domain < sums.size(); ++domain) {
      const Watts budget = cluster_.budgets_[domain];
      const bool above = sums[domain] > budget + kSlack;
      if (above && sums[domain] > sums_[domain] + kSlack && sums[domain] > Allowed(domain) + kSlack)
        Complain(fmt::format("domain {} rises from {:.3f} to {:.3f} W above its {:.3f} W", domain,
                             sums_[domain].value(), sums[domain].value(), budget.value()));
      if (above) CheckLate(domain, sums[domain]);
      if (!above && above_[domain] && !TroubleSince(fell_at_[domain]))
        cluster_.outcome_.slowest_fall =
            std::max(cluster_.outcome_.slowest_fall, cluster_.now_ - fell_at_[domain]);
      above_[domain] = above;
    }
    sums_ = sums;
    if (cluster_.now_ >= next_look_) {
      next_look_ = cluster_.now_ + cluster_.options_.between_looks;
      CheckCeilings();
      CheckDraw();
    }
    share_ += sums_[0] / cluster_.budgets_[0];
    ++looks_;
  }
  double share() const { return looks_ == 0 ? 0 : share_ / looks_; }

  // Caps that were there before there was a budget.
  void Begin() { sums_ = Sums(); }

 private:
  // A budget that has fallen lets raises arrive that were granted before, as long as those are
  // valid.
  Watts Allowed(std::size_t domain) const {
    const GrantBook::Options& book = cluster_.options_.book;
    Watts most = cluster_.budgets_[domain];
    for (const Earlier& one : earlier_)
      if (cluster_.now_ - one.until <= book.valid + book.margin)
        most = std::max(most, one.budgets[domain]);
    return most;
  }

  bool TroubleSince(Seconds time) const {
    // Earlier trouble may still be felt.
    return cluster_.trouble_ && cluster_.trouble_at_ + 30s >= time;
  }

  std::vector<Watts> Sums() const {
    std::vector<Watts> sums(cluster_.domains_.size());
    for (const auto& node : cluster_.nodes_)
      for (const Gpu& gpu : node->gpus)
        for (std::optional<std::size_t> at = node->domain; at; at = cluster_.domains_[*at].parent)
          sums[*at] += gpu.cap;
    return sums;
  }

  // A budget that has fallen must be kept after a while, as far as it can be.
  void CheckLate(std::size_t domain, Watts sum) {
    const GrantBook::Options& book = cluster_.options_.book;
    const Seconds patience =
        TroubleSince(fell_at_[domain]) ? 3 * (book.valid + book.margin) : cluster_.options_.soon;
    if (cluster_.now_ - fell_at_[domain] <= patience) return;
    if (TroubleSince(fell_at_[domain]) &&
        cluster_.now_ - cluster_.trouble_at_ < 2 * (book.valid + book.margin))
      return;  // The server has not been back for long enough.
    Watts least{};
    for (const auto& node : cluster_.nodes_) {
      bool within = false;
      for (std::optional<std::size_t> at = node->domain; at; at = cluster_.domains_[*at].parent)
        within = within || *at == domain;
      if (!within) continue;
      const bool out_of_reach = !node->alive || !node->reachable;
      for (const Gpu& gpu : node->gpus) least += out_of_reach ? gpu.cap : gpu.lowest;
    }
    if (least > cluster_.budgets_[domain]) return;
    Complain(fmt::format("domain {} still has {:.3f} W, {:.1f} s after its budget fell to {:.3f} W",
                         domain, sum.value(), (cluster_.now_ - fell_at_[domain]).count(),
                         cluster_.budgets_[domain].value()));
  }

  void CheckCeilings() {
    if (cluster_.book_ == nullptr) return;
    for (const GrantBook::NodeView& view : cluster_.book_->View(ToTimePoint(cluster_.now_))) {
      const Node& node =
          *cluster_.nodes_[static_cast<std::size_t>(std::stoul(view.name.substr(1)))];
      for (std::size_t i = 0; i < view.devices.size(); ++i)
        if (node.gpus[i].cap > view.devices[i].ceiling + kSlack)
          Complain(fmt::format("{} of {} holds {:.3f} W, and {:.3f} W are committed",
                               view.devices[i].id, view.name, node.gpus[i].cap.value(),
                               view.devices[i].ceiling.value()));
    }
  }

  void CheckDraw() {
    if (!cluster_.options_.draw) return;
    Watts drawn{};
    for (const auto& node : cluster_.nodes_)
      for (const Gpu& gpu : node->gpus) drawn += cluster_.options_.draw(gpu.number, gpu.cap);
    if (cluster_.now_ - fell_at_[0] <= cluster_.options_.soon) return;
    if (above_[0]) return;  // Judged by its caps.
    const Watts over = drawn - 1.01 * cluster_.budgets_[0];
    cluster_.outcome_.highest_over = std::max(cluster_.outcome_.highest_over, over);
    if (over > kSlack)
      Complain(fmt::format("{:.1f} W are drawn from a budget of {:.1f} W", drawn.value(),
                           cluster_.budgets_[0].value()));
  }

  void Complain(const std::string& what) {
    if (cluster_.outcome_.violations.size() >= kMostViolations) return;
    cluster_.outcome_.violations.push_back(
        fmt::format("seed {}, {:.3f} s: {}", cluster_.options_.seed, cluster_.now_.count(), what));
  }

  struct Earlier {
    Seconds until{};
    std::vector<Watts> budgets{};
  };

  ClusterSimulation& cluster_;
  std::vector<Earlier> earlier_{};
  std::vector<Watts> sums_;
  std::vector<Seconds> fell_at_;
  std::vector<bool> above_;
  Seconds next_look_{0};
  double share_ = 0;
  double looks_ = 0;
};

ClusterSimulation::ClusterSimulation(Options options)
    : options_(std::move(options)), random_(options_.seed) {
  domains_.push_back({.name = "site"});
  for (std::size_t i = 0; i < options_.racks; ++i)
    domains_.push_back({.name = fmt::format("rack-{}", i), .parent = 0});
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    auto node = std::make_unique<Node>();
    node->name = fmt::format("n{}", i);
    node->index = i;
    node->domain = options_.racks == 0 ? 0 : 1 + i % options_.racks;
    node->guarded = !options_.dangers.unguarded_nodes || random_.Uniform() < 0.5;
    node->clock_rate = 1 + random_.Uniform(-1, 1) * options_.dangers.clock_skew;
    for (std::size_t g = 0; g < options_.gpus; ++g)
      node->gpus.push_back({.id = fmt::format("GPU-{}-{}", i, g),
                            .number = i * options_.gpus + g,
                            .lowest = Watts(100),
                            .highest = options_.highest[i % options_.highest.size()]});
    nodes_.push_back(std::move(node));
  }
  budgets_.assign(domains_.size(), Watts(0));
}

ClusterSimulation::~ClusterSimulation() = default;

void ClusterSimulation::At(Seconds delay, std::function<void()> action) {
  queue_.push_back({.at = now_ + delay, .order = ++order_, .action = std::move(action)});
  std::push_heap(queue_.begin(), queue_.end());
}

double ClusterSimulation::Exponential(Seconds mean) {
  return -mean.count() * std::log(1 - random_.Uniform());
}

Seconds ClusterSimulation::NodeTime(const Node& node) const {
  return now_ * node.clock_rate + Seconds(7919.0 * static_cast<double>(node.index));
}

void ClusterSimulation::Send(Node& node, std::function<void()> deliver) {
  const Dangers& dangers = options_.dangers;
  const int copies = random_.Uniform() < dangers.doubled ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (random_.Uniform() < dangers.lost) {
      trouble_ = true;
      trouble_at_ = now_;
      continue;
    }
    const bool late = random_.Uniform() < dangers.late;
    if (late) {
      trouble_ = true;
      trouble_at_ = now_;
    }
    At(Seconds(late ? random_.Uniform(0, 40) : random_.Uniform(0.0005, 0.03)), [&node, deliver] {
      if (node.reachable) deliver();
    });
  }
}

// --- nodes ---

void ClusterSimulation::StartNode(Node& node) {
  ++outcome_.node_starts;
  node.alive = true;
  ++node.start;
  node.lease.emplace(fmt::format("{} {}", node.name, node.start));
  // The caps of the daemon before still hold, for as long as they did.
  if (node.deadline && NodeTime(node) >= *node.deadline)
    for (Gpu& gpu : node.gpus) gpu.target = gpu.fallback;
  Apply(node, ++node.order, 0);
  WatchExpiry(node);
  const std::uint64_t start = node.start;
  At(Seconds(random_.Uniform(0, 2)), [this, &node, start] {
    if (node.start == start) ReportFrom(node);
  });
}

void ClusterSimulation::CrashNode(Node& node) {
  if (!node.alive) return;
  trouble_ = true;
  trouble_at_ = now_;
  node.alive = false;
  ++node.start;  // Its answers under way are lost.
  if (random_.Uniform() < options_.dangers.reboots) {
    node.deadline.reset();
    // It is off, and its daemon sets the fallback before anything else can run.
    for (Gpu& gpu : node.gpus) gpu.cap = gpu.target = gpu.lowest;
  }
  At(Seconds(random_.Uniform(0.2, random_.Uniform() < 0.3 ? 90 : 5)), [this, &node] {
    trouble_at_ = now_;
    StartNode(node);
  });
}

void ClusterSimulation::ReportFrom(Node& node) {
  NodeReport report = node.lease->BeginReport();
  report.node = node.name;
  report.guarded = node.guarded;
  for (const Gpu& gpu : node.gpus)
    report.devices.push_back({.id = gpu.id,
                              .lowest = gpu.lowest,
                              .highest = gpu.highest,
                              .cap = std::max(gpu.cap, gpu.target),
                              .fallback = gpu.fallback});
  const Seconds sent_at = NodeTime(node);
  const std::uint64_t start = node.start;
  Send(node, [this, &node, report, start, sent_at] { Receive(report, node, start, sent_at); });
  const Seconds period = options_.book.next_report * random_.Uniform(0.9, 1.1);
  At(period / node.clock_rate, [this, &node, start] {
    if (node.start == start) ReportFrom(node);
  });
}

// Devices obey one by one.
void ClusterSimulation::Apply(Node& node, std::uint64_t order, std::uint64_t number) {
  node.number = number;
  for (Gpu& gpu : node.gpus) {
    const Watts target = gpu.target;
    const std::uint64_t start = node.start;
    At(random_.Uniform(0.01, 1) * kLongestObedience,
       [this, &node, &gpu, order, number, target, start] {
         // A daemon that has died sets nothing; its guard finishes a fallback.
         const bool died = start != node.start && !(node.guarded && number == 0);
         if (order < gpu.order || died) return;
         if (target > gpu.cap) ++outcome_.raises;
         gpu.cap = target;
         gpu.order = order;
         const bool all =
             std::ranges::all_of(node.gpus, [order](const Gpu& one) { return one.order >= order; });
         if (all && number != 0 && node.alive && node.order == order)
           node.lease->NoteApplied(number);
       });
  }
}

void ClusterSimulation::WatchExpiry(Node& node) {
  if (!node.deadline) return;
  const std::uint64_t watch = ++node.expiry_watch;
  const Seconds left = std::max(Seconds(0), *node.deadline - NodeTime(node)) / node.clock_rate;
  At(left + random_.Uniform() * kLongestNotice, [this, &node, watch] {
    if (node.expiry_watch != watch) return;
    if (!node.alive && !node.guarded) return;  // It is looked at again when the daemon starts.
    node.deadline.reset();
    for (Gpu& gpu : node.gpus) gpu.target = gpu.fallback;
    Apply(node, ++node.order, 0);
  });
}

void ClusterSimulation::Receive(const NodeReport& report, Node& node, std::uint64_t start,
                                Seconds sent_at) {
  if (book_ == nullptr || MayCrash()) return;
  book_->Hear(report, node.domain, ToTimePoint(now_));
  if (MayCrash()) return;
  const auto grant = book_->Answer(node.name, ToTimePoint(now_));
  if (!grant) return;
  Send(node, [this, &node, grant = *grant, start, sent_at] {
    if (!node.alive || node.start != start) return;
    const auto left = node.lease->Accept(grant, ToTimePoint(sent_at), ToTimePoint(NodeTime(node)));
    if (!left) return;
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
      node.gpus[i].target = grant.caps[i].cap;
      node.gpus[i].fallback = grant.caps[i].fallback;
    }
    node.deadline = NodeTime(node) + *left;
    Apply(node, ++node.order, grant.number);
    WatchExpiry(node);
  });
  if (MayCrash()) return;
}

// --- the server ---

bool ClusterSimulation::MayCrash() {
  if (random_.Uniform() >= options_.dangers.crash_at_step) return false;
  CrashServer();
  return true;
}

void ClusterSimulation::CrashServer() {
  trouble_ = true;
  trouble_at_ = now_;
  book_.reset();
  At(Seconds(random_.Uniform(0.1, random_.Uniform() < 0.3 ? 60 : 5)), [this] { StartServer(); });
}

void ClusterSimulation::StartServer() {
  ++outcome_.server_starts;
  if (outcome_.server_starts > 1) trouble_at_ = now_;
  GrantBook::Options options = options_.book;
  options.incarnation = ++incarnation_;
  book_ = std::make_unique<GrantBook>(domains_, options);
  book_->SetLimits(budgets_);
  for (const auto& node : nodes_)
    if (const auto found = stored_.find(node->name); found != stored_.end())
      book_->Restore(found->second, node->domain, ToTimePoint(now_));
    else
      book_->Expect(node->name, node->domain,
                    static_cast<double>(node->gpus.size()) * node->gpus[0].highest);
  const std::uint64_t incarnation = incarnation_;
  At(Seconds(random_.Uniform(0, 1)), [this, incarnation] {
    if (book_ != nullptr && incarnation_ == incarnation) StepServer();
  });
}

// Returns false where the server is told that it has failed, whether or not it has happened.
bool ClusterSimulation::Store(const std::vector<StoredNode>& nodes) {
  const bool fails = random_.Uniform() < options_.dangers.store_fails;
  if (!fails || random_.Uniform() < 0.5)
    for (const StoredNode& node : nodes) stored_[node.name] = node;
  return !fails;
}

void ClusterSimulation::Choose() {
  if (options_.choose) return options_.choose(*book_, ToTimePoint(now_));
  if (random_.Uniform() < 0.7) return;
  for (const auto& node : nodes_)
    for (const Gpu& gpu : node->gpus)
      if (random_.Uniform() < 0.7) book_->Want(node->name, gpu.id, Watts(random_.Uniform(50, 500)));
}

void ClusterSimulation::StepServer() {
  Choose();
  if (MayCrash()) return;
  GrantBook::Plan plan = book_->MakePlan(ToTimePoint(now_));
  if (MayCrash()) return;
  if (!plan.to_store.empty() && !Store(plan.to_store)) {
    book_->NoteFailedStore(plan);
    plan = book_->MakePlan(ToTimePoint(now_), GrantBook::Raises::kNone);
    plan.to_store.clear();
  }
  if (MayCrash()) return;
  book_->Adopt(plan, ToTimePoint(now_));
  if (MayCrash()) return;
  const std::uint64_t incarnation = incarnation_;
  At(kServerPeriod, [this, incarnation] {
    if (book_ != nullptr && incarnation_ == incarnation) StepServer();
  });
}

void ClusterSimulation::ChangeBudget() {
  const std::vector<Watts> before = budgets_;
  std::vector<Watts> least(domains_.size());
  std::vector<Watts> most(domains_.size());
  for (const auto& node : nodes_)
    for (const Gpu& gpu : node->gpus)
      for (std::optional<std::size_t> at = node->domain; at; at = domains_[*at].parent) {
        least[*at] += gpu.lowest;
        most[*at] += gpu.highest;
      }
  for (std::size_t i = 0; i < budgets_.size(); ++i)
    budgets_[i] = least[i] + random_.Uniform(0.05, 1.05) * (most[i] - least[i]);
  auditor_->BudgetChanged(before);
  if (book_ != nullptr) book_->SetLimits(budgets_);
  At(Seconds(Exponential(options_.between_budgets)), [this] { ChangeBudget(); });
}

ClusterSimulation::Outcome ClusterSimulation::Run() {
  const Dangers& dangers = options_.dangers;
  for (const auto& node : nodes_)
    for (Gpu& gpu : node->gpus) gpu.cap = gpu.target = gpu.fallback = gpu.lowest;
  auditor_ = std::make_unique<Auditor>(*this);
  ChangeBudget();
  auditor_->Begin();
  StartServer();
  for (const auto& node : nodes_) {
    StartNode(*node);
    if (dangers.between_partitions != Seconds::max()) {
      const auto cut = std::make_shared<std::function<void()>>();
      *cut = [this, &node = *node, again = std::weak_ptr(cut)] {
        trouble_ = true;
        trouble_at_ = now_;
        node.reachable = !node.reachable;
        const auto next = again.lock();
        if (!next) return;
        At(Seconds(node.reachable ? Exponential(options_.dangers.between_partitions)
                                  : random_.Uniform(0.1, 60)),
           [next] { (*next)(); });
      };
      At(Seconds(Exponential(dangers.between_partitions)), [cut] { (*cut)(); });
    }
    if (dangers.between_node_crashes != Seconds::max())
      for (Seconds at{0}; at < options_.duration;
           at += Seconds(Exponential(dangers.between_node_crashes)))
        if (at > Seconds(0)) At(at, [this, &node = *node] { CrashNode(node); });
  }
  const Seconds end = now_ + options_.duration;
  while (!queue_.empty() && queue_.front().at <= end && outcome_.violations.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    const Event event = std::move(queue_.back());
    queue_.pop_back();
    now_ = event.at;
    event.action();
    ++outcome_.events;
    auditor_->Look();
  }
  outcome_.share_used = auditor_->share();
  return outcome_;
}

}  // namespace zeus::budget
