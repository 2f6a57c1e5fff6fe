// The part of a BudgetServer that learns from the draw of devices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/quantity_text.h"
#include "zeus/budget/budget_server.h"

namespace zeus::budget {
namespace {

using namespace std::chrono_literals;

constexpr Watts kChangedCap{2};       // A smaller change of a cap is none.
constexpr double kBoundShare = 0.95;  // A device that draws more of its cap is bound by it.
constexpr double kEnoughDraws = 10;   // So many draws say what a job takes.
constexpr double kHeadroom = 1.2;     // A cap so far above the draw does not bind.
constexpr Seconds kCapsAlone = 60s;   // After more was drawn than may be.
constexpr Seconds kSettled = 10s;     // After that the draw follows a new cap.

}  // namespace

void BudgetServer::NoteDraw(Watts power, Appetite& appetite) {
  ++appetite.draws;
  const double distance = power.value() - appetite.mean;
  appetite.mean += distance / appetite.draws;
  appetite.variance += distance * (power.value() - appetite.mean);
  appetite.highest = std::max(appetite.highest, power);
}

// The highest draw so far and two standard deviations: nothing for a job that is too young.
std::optional<Watts> BudgetServer::MostOf(const Appetite& appetite) {
  if (appetite.bound || appetite.draws < kEnoughDraws) return std::nullopt;
  const double sigma = std::sqrt(appetite.variance / appetite.draws);
  return appetite.highest + Watts(2 * sigma);
}

// In mode "drawn" the cap of a device stays so far above its draw that a draw which rises is seen:
// caps above the draw take no watts from others.
Watts BudgetServer::HeadroomOf(const std::string& device) const {
  if (configuration_.mode != water_filling::Resource::kDrawn || overdrawn_at_) return Watts(0);
  const auto appetite = appetites_.find(device);
  const auto most = appetite == appetites_.end() ? std::nullopt : MostOf(appetite->second);
  return most ? kHeadroom * *most : Watts(0);
}

// By limit of a domain. A node that does not answer may draw all that its caps allow.
std::vector<Watts> BudgetServer::DrawnByDomain(
    const std::vector<GrantBook::NodeView>& nodes) const {
  std::vector<Watts> drawn(limits_.size());
  for (const GrantBook::NodeView& node : nodes) {
    Watts all{};
    for (const GrantBook::DeviceView& device : node.devices)
      all += node.silent ? device.ceiling : device.power.value_or(device.ceiling);
    for (std::size_t i = 0; i < drawn.size(); ++i)
      if (book_->IsIn(node.domain, i)) drawn[i] += all;
  }
  return drawn;
}

// When more is drawn than may be, all devices count with their caps for a while, which lowers them
// at once.
void BudgetServer::NoteOverdraw(const std::vector<Watts>& drawn, TimePoint now) {
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (drawn[i] <= limits_[i]) continue;
    if (!overdrawn_at_)
      Note("overdrawn",
           fmt::format("{} draws {} of the {} that it may: caps alone count for {:.0f} s",
                       book_->domains()[i].name, PowerText(drawn[i]), PowerText(limits_[i]),
                       kCapsAlone.count()));
    overdrawn_at_ = now;
  }
  if (overdrawn_at_ && now - *overdrawn_at_ > kCapsAlone) overdrawn_at_.reset();
}

// In mode "drawn": tells the book what devices leave unused.
void BudgetServer::ExpectDraws(TimePoint now) {
  if (configuration_.mode != water_filling::Resource::kDrawn) return;
  const auto nodes = book_->View(now);
  NoteOverdraw(DrawnByDomain(nodes), now);
  for (const GrantBook::NodeView& node : nodes)
    for (const GrantBook::DeviceView& device : node.devices) {
      const auto appetite = appetites_.find(device.id);
      const bool known = !overdrawn_at_ && !node.silent && appetite != appetites_.end();
      book_->ExpectDraw(node.name, device.id, known ? MostOf(appetite->second) : std::nullopt);
    }
}

// A cap that was changed a moment ago tells nothing yet: the draw follows.
void BudgetServer::NoteAppetite(const NodeReport& report, TimePoint now) {
  for (const DeviceReport& device : report.devices) {
    Appetite& appetite = appetites_[device.id];
    std::string job;
    for (const JobReport& one : report.jobs)
      if (std::ranges::find(one.devices, device.id) != one.devices.end()) job = one.id;
    // The draw of a job tells nothing of the next one.
    if (job != appetite.job) appetite = {.job = std::move(job)};
    const Watts change = device.cap - appetite.cap;
    if (change > kChangedCap || change < -1 * kChangedCap) {
      appetite.cap = device.cap;
      appetite.since = now;
    }
    if (!device.power) continue;
    if (*device.power >= kBoundShare * device.cap)
      appetite.bound = true;
    else if (now - appetite.since >= kSettled)
      appetite.bound = false;
    if (!appetite.bound) NoteDraw(*device.power, appetite);
  }
}

}  // namespace zeus::budget
