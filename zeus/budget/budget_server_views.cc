// The answers of a BudgetServer to people's questions.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/budget/budget_server.h"

namespace zeus::budget {

std::vector<BudgetServer::Event> BudgetServer::EventsAfter(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::vector<Event> events;
  for (const Event& event : events_)
    if (event.number > number) events.push_back(event);
  return events;
}

BudgetServer::Figures BudgetServer::figures() {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  Figures figures = figures_;
  if (allocation_) {
    figures.mean_slowdown = slowdowns_.mean;
    figures.worst_slowdown = slowdowns_.worst;
  }
  const std::vector<Watts> budgets = BudgetsNow();
  for (std::size_t i = 0; i < budgets.size(); ++i)
    figures.domains.push_back({.name = book_->domains()[i].name,
                               .budget = budgets[i],
                               .limit = limits_[i],
                               .committed = book_->committed(i, now),
                               .price = allocation_ ? allocation_->domains[i].price : 0});
  for (const GrantBook::NodeView& node : book_->View(now)) {
    ++figures.nodes;
    if (node.silent) ++figures.silent;
    for (const GrantBook::DeviceView& device : node.devices)
      for (std::size_t i = 0; i < budgets.size(); ++i)
        if (!node.silent && device.power && book_->IsIn(node.domain, i))
          figures.domains[i].drawn += *device.power;
  }
  return figures;
}

Json BudgetServer::Show() {
  const Figures figures = this->figures();
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  Json domains = Json::array();
  for (std::size_t i = 0; i < figures.domains.size(); ++i) {
    const DomainFigures& one = figures.domains[i];
    const auto parent = book_->domains()[i].parent;
    domains.push_back({{"name", one.name},
                       {"parent", parent ? Json(book_->domains()[*parent].name) : Json()},
                       {"watts", one.budget.value()},
                       {"limit_watts", limits_[i].value()},
                       {"committed_watts", one.committed.value()},
                       {"drawn_watts", one.drawn.value()},
                       {"free_watts", std::max(0.0, (limits_[i] - one.committed).value())},
                       {"price_per_watt", one.price}});
  }
  Json nodes = Json::array();
  for (const GrantBook::NodeView& node : book_->View(now)) {
    Json devices = Json::array();
    for (const GrantBook::DeviceView& device : node.devices)
      devices.push_back({{"id", device.id},
                         {"model", device.model},
                         {"cap_watts", device.authorised.value()},
                         {"committed_watts", device.ceiling.value()},
                         {"fallback_watts", device.fallback.value()},
                         {"drawn_watts", device.power ? Json(device.power->value()) : Json()}});
    nodes.push_back({{"name", node.name},
                     {"domain", book_->domains()[node.domain].name},
                     {"silent", node.silent},
                     {"guarded", node.guarded},
                     {"committed_watts", node.committed.value()},
                     {"devices", std::move(devices)}});
  }
  Json troubles = Json::array();
  if (allocation_)
    for (const std::string& trouble : allocation_->troubles) troubles.push_back(trouble);
  if (shut_out_)
    troubles.push_back(NoLongerCurrent().message +
                       "; this one grants nothing any more, and what it shows is old");
  else if (!stores_)
    troubles.push_back("the database does not take changes: no watts are raised");
  return {{"domains", std::move(domains)},
          {"nodes", std::move(nodes)},
          {"infeasible", figures.missing > Watts(0)},
          {"missing_watts", figures.missing.value()},
          {"mean_slowdown", allocation_ ? Json(slowdowns_.mean) : Json()},
          {"worst_slowdown", allocation_ ? Json(slowdowns_.worst) : Json()},
          {"current", !shut_out_},
          {"troubles", std::move(troubles)},
          {"doubts", doubts_}};
}

Json BudgetServer::ShowSchedule() {
  const std::lock_guard lock(mutex_);
  Json targets = Json::array();
  for (const Target& target : FollowTargets())
    if (target.start > WallTime::min()) targets.push_back(ToJson(target));
  for (const auto* list : {&configuration_.schedule, &std::as_const(targets_)})
    for (const Target& target : *list) targets.push_back(ToJson(target));
  return {{"targets", std::move(targets)}};
}

Json BudgetServer::ShowJobs() {
  const std::lock_guard lock(mutex_);
  Json jobs = Json::array();
  int idle = 0;
  Watts kept{};
  for (const JobLine& job : jobs_) {
    if (job.idle) {
      idle += job.gpus;
      kept += job.grant.taken;
      continue;
    }
    jobs.push_back({{"name", job.name},
                    {"gpus", job.gpus},
                    {"weight", job.weight},
                    {"limit_watts", job.grant.limit.value()},
                    {"taken_watts", job.grant.taken.value()},
                    {"slowdown", job.grant.slowdown},
                    {"marginal_per_watt", job.grant.marginal},
                    {"bound_missed", job.grant.bound_missed},
                    {"assumed", job.assumed}});
  }
  return {{"jobs", std::move(jobs)}, {"idle", {{"gpus", idle}, {"taken_watts", kept.value()}}}};
}

Result<std::vector<std::string>> BudgetServer::Effect(const Wish& wish) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const std::size_t domain, FindDomain(wish.domain));
  std::vector<Watts> limits = limits_;
  limits[domain] = wish.watts * (1 - configuration_.reserve);
  const TimePoint now = clock_.Now();
  const Question question = Ask(book_->View(now), limits);
  std::vector<std::string> effect;
  if (question.problem.jobs.empty()) return std::vector<std::string>{"no node reports yet"};
  ZEUS_TRY(const water_filling::Allocation then, Solve(question.problem));
  std::size_t at_lowest = 0;
  std::size_t jobs = 0;
  for (std::size_t i = 0; i < then.jobs.size(); ++i) {
    if (question.idle[i]) continue;
    ++jobs;
    if (then.jobs[i].limit <= *question.problem.jobs[i].lowest + Watts(0.5)) ++at_lowest;
  }
  const Slowdowns slowdowns = SlowdownsOf(question, then);
  effect.push_back(fmt::format("mean slowdown {:.1f} %, worst {:.1f} % ({:.1f} and {:.1f} % now)",
                               100 * (slowdowns.mean - 1), 100 * (slowdowns.worst - 1),
                               100 * (slowdowns_.mean - 1), 100 * (slowdowns_.worst - 1)));
  effect.push_back(fmt::format("{} of {} jobs at their lowest limit", at_lowest, jobs));
  for (const std::string& trouble : then.troubles) effect.push_back(trouble);
  std::vector<Watts> budgets = BudgetsNow();
  budgets[domain] = wish.watts;
  for (const std::string& doubt : DoubtsAbout(question, budgets)) effect.push_back(doubt);
  return effect;
}

}  // namespace zeus::budget
