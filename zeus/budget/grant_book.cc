#include "zeus/budget/grant_book.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zeus::budget {
namespace {

constexpr std::size_t kMostIssued = 8;  // Older ones are taken together.
// Numbers of grants stay below 2^53, which every reader of JSON keeps exactly.
constexpr std::uint64_t kNumbersOfAStart = std::uint64_t{1} << 32;
constexpr Watts kNothing{1e-6};  // Sums of watts differ by less for the order of their parts.

}  // namespace

GrantBook::GrantBook(std::vector<GrantDomain> domains, Options options)
    : domains_(std::move(domains)),
      options_(std::move(options)),
      limits_(domains_.size()),
      committed_(domains_.size()),
      next_number_(options_.incarnation * kNumbersOfAStart) {}

GrantBook::Node& GrantBook::NodeOf(const std::string& name, std::size_t domain) {
  const auto [place, added] = nodes_.try_emplace(name);
  if (added) place->second.domain = domain;
  return place->second;
}

void GrantBook::Commit(Node& node, Watts watts) {
  const Watts change = watts - node.committed;
  node.committed = watts;
  for (std::optional<std::size_t> at = node.domain; at; at = domains_[*at].parent)
    committed_[*at] += change;
}

void GrantBook::Expect(const std::string& node, std::size_t domain, Watts watts) {
  Node& expected = NodeOf(node, domain);
  if (!expected.devices.empty()) return;
  expected.expected = watts;
  Commit(expected, watts);
}

void GrantBook::Restore(const StoredNode& stored, std::size_t domain, TimePoint now) {
  Node& node = NodeOf(stored.name, domain);
  node.guarded = stored.guarded;
  node.stored_guarded = stored.guarded;
  node.expected = Watts(0);
  // Grants of the earlier start were given before this moment.
  node.held_until = ExpiryOfGrantAt(now);
  node.held_number = next_number_ - 1;
  node.devices.clear();
  for (const StoredDevice& device : stored.devices)
    node.devices.push_back({.id = device.id,
                            .model = device.model,
                            .lowest = device.lowest,
                            .highest = device.highest,
                            .fallback = device.fallback,
                            .held = device.ceiling,
                            .authorised = device.ceiling,
                            .wanted = device.ceiling,
                            .stored = device.ceiling});
  Refresh(node, now);
}

bool GrantBook::Forget(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return false;
  Commit(found->second, Watts(0));
  nodes_.erase(found);
  return true;
}

void GrantBook::SetLimits(std::vector<Watts> limits) { limits_ = std::move(limits); }

void GrantBook::Want(const std::string& name, std::string_view device, Watts cap) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  for (Device& one : found->second.devices)
    if (one.id == device) one.wanted = std::clamp(cap, one.lowest, one.highest);
}

void GrantBook::ExpectDraw(const std::string& name, std::string_view device,
                           std::optional<Watts> most) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  for (Device& one : found->second.devices)
    if (one.id == device) one.most = most;
}

// Devices that a report leaves out keep their ceilings: they may come back as they were.
void GrantBook::TakeDevices(const std::string& name, Node& node, const NodeReport& report) {
  for (const DeviceReport& told : report.devices) {
    auto found = std::ranges::find(node.devices, told.id, &Device::id);
    const bool added = found == node.devices.end();
    if (added) {
      node.devices.push_back({.id = told.id});
      found = node.devices.end() - 1;
      for (Issued& issued : node.issued) issued.caps.emplace_back();
    }
    Device& device = *found;
    device.model = told.model;
    device.lowest = told.lowest;
    device.highest = told.highest;
    device.fallback = std::clamp(options_.fallback ? options_.fallback(name, told) : told.lowest,
                                 told.lowest, told.highest);
    device.reported = told.cap;
    device.reported_fallback = told.fallback;
    device.power = told.power;
    device.utilization = told.utilization;
    if (!added) continue;
    device.authorised = std::clamp(told.cap, told.lowest, told.highest);
    device.wanted = device.fallback;
  }
}

// The node will never apply a grant that is older than one which it has applied.
void GrantBook::Supersede(Node& node, std::uint64_t applied) {
  std::erase_if(node.issued, [applied](const Issued& one) { return one.number < applied; });
  if (applied <= node.held_number) return;
  for (Device& device : node.devices) device.held = Watts(0);
}

bool GrantBook::Hear(const NodeReport& report, std::size_t domain, TimePoint now) {
  Node& node = NodeOf(report.node, domain);
  const bool same = node.session == report.session;
  if (same && report.sequence <= node.sequence) {
    Supersede(node, report.applied);
    Refresh(node, now);
    return false;
  }
  if (!same) {
    // A report of an earlier session may have come late: its successor's caps count on until a
    // newer grant is confirmed.
    for (std::size_t i = 0; i < node.devices.size(); ++i)
      node.devices[i].held = CeilingWithoutAnswer(node, i, now);
    node.held_until = std::max(node.held_until, ExpiryOfGrantAt(now));
    node.held_number = next_number_ - 1;
    node.session = report.session;
  }
  node.sequence = report.sequence;
  node.heard = true;
  node.heard_at = now;
  node.guarded = report.guarded;
  node.expected = Watts(0);
  node.jobs = report.jobs;
  Supersede(node, report.applied);
  TakeDevices(report.node, node, report);
  node.reported_until = ExpiryOfGrantAt(now);
  Refresh(node, now);
  return true;
}

Watts GrantBook::CeilingWithoutAnswer(const Node& node, std::size_t index, TimePoint now) {
  const Device& device = node.devices[index];
  // Without a guard a dead daemon leaves the caps as they are, however long.
  const auto counts = [&](TimePoint until) { return !node.guarded || now < until; };
  Watts ceiling = std::max(device.fallback, device.reported_fallback);
  if (counts(node.reported_until)) ceiling = std::max(ceiling, device.reported);
  if (counts(node.held_until)) ceiling = std::max(ceiling, device.held);
  for (const Issued& issued : node.issued)
    if (counts(issued.expires)) ceiling = std::max(ceiling, issued.caps[index]);
  return ceiling;
}

void GrantBook::Refresh(Node& node, TimePoint now) {
  if (node.guarded)
    std::erase_if(node.issued, [now](const Issued& one) { return now >= one.expires; });
  node.next_expiry = TimePoint::max();
  if (node.guarded) {
    const auto expires = [&](TimePoint at) {
      if (at > now) node.next_expiry = std::min(node.next_expiry, at);
    };
    expires(node.reported_until);
    expires(node.held_until);
    for (const Issued& issued : node.issued) expires(issued.expires);
  }
  Watts sum = node.expected;
  for (std::size_t i = 0; i < node.devices.size(); ++i) {
    Device& device = node.devices[i];
    device.ceiling = std::max(device.authorised, CeilingWithoutAnswer(node, i, now));
    device.counts_most = IsActive(node, now);
    sum += device.Taken(device.ceiling);
  }
  Commit(node, sum);
}

void GrantBook::Expire(TimePoint now) {
  for (auto& [name, node] : nodes_)
    if (node.next_expiry <= now || HasBecomeSilent(node, now)) Refresh(node, now);
}

// The draw of a silent node is not known any more.
bool GrantBook::HasBecomeSilent(const Node& node, TimePoint now) const {
  return !node.devices.empty() && node.devices.front().counts_most && !IsActive(node, now);
}

std::optional<Grant> GrantBook::Answer(const std::string& name, TimePoint now) {
  const auto found = nodes_.find(name);
  if (!planned_ || found == nodes_.end() || !found->second.heard) return std::nullopt;
  Node& node = found->second;
  Grant grant{
      .number = next_number_++, .valid = options_.valid, .next_report = options_.next_report};
  Issued issued{.number = grant.number, .expires = ExpiryOfGrantAt(now)};
  for (const Device& device : node.devices) {
    // Nothing is said that the next start of the server would not know.
    const Watts cap = std::min(device.authorised, device.stored);
    if (cap <= Watts(0)) return std::nullopt;
    issued.caps.push_back(cap);
    grant.caps.push_back({.device = device.id, .cap = cap, .fallback = device.fallback});
  }
  node.issued.push_back(std::move(issued));
  if (node.issued.size() > kMostIssued) {
    const Issued& oldest = node.issued.front();
    for (std::size_t i = 0; i < node.devices.size(); ++i)
      node.devices[i].held = std::max(node.devices[i].held, oldest.caps[i]);
    node.held_number = std::max(node.held_number, oldest.number);
    node.held_until = std::max(node.held_until, oldest.expires);
    node.issued.erase(node.issued.begin());
  }
  Refresh(node, now);
  return grant;
}

// --- plans ---

Watts GrantBook::Room(const std::vector<GrantDomain>& domains, const std::vector<Watts>& limits,
                      const std::vector<Watts>& committed, std::size_t domain) {
  Watts room{1e18};
  for (std::optional<std::size_t> at = domain; at; at = domains[*at].parent)
    room = std::min(room, limits[*at] - committed[*at]);
  return room;
}

bool GrantBook::IsIn(std::size_t domain, std::size_t ancestor) const {
  for (std::optional<std::size_t> at = domain; at; at = domains_[*at].parent)
    if (*at == ancestor) return true;
  return false;
}

// Lowers the fitted caps of a domain until they fit beside the nodes that cannot be reached.
void GrantBook::FitDomain(std::size_t domain, TimePoint now) {
  Watts unreachable{};
  Watts least{};
  Watts wanted{};
  std::vector<Device*> devices;
  for (auto& [name, node] : nodes_) {
    if (!IsIn(node.domain, domain)) continue;
    if (!IsActive(node, now)) {
      unreachable += node.committed;
      continue;
    }
    for (Device& device : node.devices) {
      least += std::max(device.lowest, device.fallback);
      wanted += device.Taken(device.fitted);
      devices.push_back(&device);
    }
  }
  const Watts room = limits_[domain] - unreachable;
  if (wanted <= room || wanted <= least) return;
  const double share = std::max(0.0, (room - least) / (wanted - least));
  for (Device* device : devices) {
    const Watts floor = std::max(device->lowest, device->fallback);
    const Watts taken = device->Taken(device->fitted);
    if (taken > floor) device->fitted = floor + share * (taken - floor);
  }
}

void GrantBook::Fit(TimePoint now) {
  for (auto& [name, node] : nodes_)
    for (Device& device : node.devices)
      device.fitted = std::max({device.wanted, device.lowest, device.fallback});
  for (std::size_t domain = domains_.size(); domain-- > 0;) FitDomain(domain, now);
}

// The cap to which a device may rise, or its ceiling if it needs no more. Limits are whole watts.
Watts GrantBook::Raised(const Device& device, Watts room) {
  if (device.fitted <= device.ceiling + kNothing) return device.ceiling;
  // A cap above what the device draws takes no more room.
  const Watts with_room = device.Taken(device.ceiling) + std::max(Watts(0), room);
  if (device.Taken(device.fitted) <= with_room + kNothing && device.fitted > with_room)
    return device.fitted;
  const Watts most = std::min(device.fitted, device.ceiling + std::max(Watts(0), room));
  return most == device.fitted ? most : Watts(std::floor(most.value()));
}

// The caps of the next answer. Takes the room for raises from `committed`.
std::vector<Watts> GrantBook::NextCaps(const Node& node, Raises raises,
                                       std::vector<Watts>& committed, TimePoint now) const {
  std::vector<Watts> caps;
  const bool active = IsActive(node, now);
  for (std::size_t i = 0; i < node.devices.size(); ++i) {
    const Device& device = node.devices[i];
    const Watts room = Room(domains_, limits_, committed, node.domain);
    const bool over = room < -1 * kNothing;
    if (!active) {
      // It is answered when it comes back, perhaps from its fallback: where there is too little, it
      // starts from there.
      const Watts kept = over ? std::max(device.lowest, device.fallback) : device.authorised;
      caps.push_back(std::min({kept, device.authorised, CeilingWithoutAnswer(node, i, now)}));
      continue;
    }
    Watts cap = std::min(device.fitted, device.ceiling);
    // Where more is committed than may be, ceilings are to fall, so no cap rises within its own.
    // It may hold less than its ceiling, after a restart of the server for one.
    if (over)
      cap = std::min(
          {cap, device.authorised, std::max({device.reported, device.lowest, device.fallback})});
    const Watts raised = Raised(device, room);
    if (raised > device.ceiling && raises == Raises::kAllowed) {
      for (std::optional<std::size_t> at = node.domain; at; at = domains_[*at].parent)
        committed[*at] += device.Taken(raised) - device.Taken(device.ceiling);
      cap = raised;
    }
    caps.push_back(cap);
  }
  return caps;
}

void GrantBook::AddToStore(const std::string& name, const Node& node,
                           const std::vector<Watts>& caps, std::vector<StoredNode>& raised,
                           std::vector<StoredNode>& lowered) {
  StoredNode stored{.name = name, .guarded = node.guarded};
  // A later start must not take an unguarded node for one that falls back by itself.
  bool rises = node.stored_guarded && !node.guarded;
  bool falls = node.guarded && !node.stored_guarded;
  for (std::size_t i = 0; i < node.devices.size(); ++i) {
    const Device& device = node.devices[i];
    const Watts ceiling = std::max(device.ceiling, caps[i]);
    rises = rises || ceiling > device.stored + kNothing;
    falls = falls || ceiling < device.stored - kNothing;
    stored.devices.push_back({.id = device.id,
                              .model = device.model,
                              .lowest = device.lowest,
                              .highest = device.highest,
                              .ceiling = ceiling,
                              .fallback = std::max(device.fallback, device.reported_fallback)});
  }
  if (rises)
    raised.push_back(std::move(stored));
  else if (falls)
    lowered.push_back(std::move(stored));
}

GrantBook::Plan GrantBook::MakePlan(TimePoint now, Raises raises) {
  Expire(now);
  Fit(now);
  // Sums are made anew: adding and subtracting for months would leave a rest.
  committed_.assign(domains_.size(), Watts(0));
  for (auto& [name, node] : nodes_) {
    node.committed = Watts(0);
    Refresh(node, now);
  }
  std::vector<Watts> committed = committed_;
  Plan plan;
  std::vector<StoredNode> lowered;
  const auto visit = [&](const std::string& name, const Node& node) {
    Plan::Change change{.node = name, .caps = NextCaps(node, raises, committed, now)};
    AddToStore(name, node, change.caps, plan.to_store, lowered);
    plan.changes.push_back(std::move(change));
  };
  const auto begin = nodes_.lower_bound(first_to_raise_);
  for (auto at = begin; at != nodes_.end(); ++at) visit(at->first, at->second);
  for (auto at = nodes_.begin(); at != begin; ++at) visit(at->first, at->second);
  // Ceilings that rise are stored together with those whose fall made the room.
  std::ranges::move(lowered, std::back_inserter(plan.to_store));
  if (begin != nodes_.end())
    first_to_raise_ = std::next(begin) == nodes_.end() ? "" : std::next(begin)->first;
  else
    first_to_raise_.clear();
  return plan;
}

void GrantBook::Adopt(const Plan& plan, TimePoint now) {
  planned_ = true;
  for (const StoredNode& stored : plan.to_store) {
    const auto found = nodes_.find(stored.name);
    if (found == nodes_.end()) continue;
    found->second.stored_guarded = stored.guarded;
    for (const StoredDevice& one : stored.devices)
      for (Device& device : found->second.devices)
        if (device.id == one.id) device.stored = one.ceiling;
  }
  for (const Plan::Change& change : plan.changes) {
    const auto found = nodes_.find(change.node);
    if (found == nodes_.end() || found->second.devices.size() != change.caps.size()) continue;
    for (std::size_t i = 0; i < change.caps.size(); ++i)
      found->second.devices[i].authorised = change.caps[i];
    Refresh(found->second, now);
  }
}

void GrantBook::NoteFailedStore(const Plan& plan) {
  for (const StoredNode& stored : plan.to_store) {
    const auto found = nodes_.find(stored.name);
    if (found == nodes_.end()) continue;
    found->second.stored_guarded = found->second.stored_guarded || stored.guarded;
    for (const StoredDevice& one : stored.devices)
      for (Device& device : found->second.devices)
        if (device.id == one.id) device.stored = std::min(device.stored, one.ceiling);
  }
}

// --- views ---

Watts GrantBook::committed(std::size_t domain, TimePoint now) {
  Expire(now);
  return committed_[domain];
}

Watts GrantBook::CommittedOf(const std::string& name, TimePoint now) {
  Expire(now);
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? Watts(0) : found->second.committed;
}

std::vector<GrantBook::NodeView> GrantBook::View(TimePoint now) {
  Expire(now);
  std::vector<NodeView> views;
  views.reserve(nodes_.size());
  for (const auto& [name, node] : nodes_) {
    NodeView view{.name = name,
                  .domain = node.domain,
                  .heard = node.heard,
                  .silent = !IsActive(node, now),
                  .guarded = node.guarded,
                  .committed = node.committed,
                  .jobs = &node.jobs};
    for (const Device& device : node.devices)
      view.devices.push_back({.id = device.id,
                              .model = device.model,
                              .lowest = device.lowest,
                              .highest = device.highest,
                              .ceiling = device.ceiling,
                              .fallback = device.fallback,
                              .wanted = device.wanted,
                              .authorised = device.authorised,
                              .power = device.power,
                              .utilization = device.utilization});
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace zeus::budget
