#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/base/testing/sanitized.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/daemon/lease_book.h"
#include "zeus/daemon/testing/fake_knob_desk.h"

// Thousands of random requests, ends, failures, restarts and settlings, with what must always hold
// checked after each.
namespace zeus::daemon::lease_book_random_test {
namespace {

using namespace std::chrono_literals;
using wire::AtMost;
using wire::Exactly;
using wire::HolderKind;
using wire::InRange;
using wire::KnobKey;
using wire::KnobRequest;
using wire::LeaseClass;
using wire::LeaseKnob;
using wire::LeaseSpec;
using wire::LeaseState;
using wire::LeaseView;
using wire::SwitchedOn;

class RandomWalk {
 public:
  explicit RandomWalk(std::uint64_t seed) : random_(seed) {
    root_.process = ProcessIdentity{.pid = 1};
    Start();
  }

  void Step() {
    switch (random_.Below(14)) {
      case 0:
      case 1:
      case 2:
        return Create();
      case 3:
      case 4:
        return Replace();
      case 5:
        return End();
      case 6:
        return LoseHolder();
      case 7:
        return Disturb();
      case 8:
        clock_.Advance(Seconds(random_.Uniform(0, 3)));
        (void)book_->Step();
        return;
      case 9:
        if (random_.Below(10) == 0) Restart();
        return;
      default:
        return SettleOne();
    }
  }

  // Heals everything and lets the desk finish.
  void Calm() {
    desk_.refusing.clear();
    desk_.suspended.clear();
    for (const KnobKey& knob : desk_.Keys()) desk_.Settle(*book_, knob);
    desk_.SettleAll(*book_);
  }
  void EndEverything() { book_->EndAll({}, EndReason::kRevoked); }

  void CheckInvariants() const {
    std::map<KnobKey, std::multiset<std::string>> wanted;
    for (const LeaseView& view : book_->List(root_, admin_)) {
      ASSERT_EQ(view.end_reason.empty(),
                view.state != LeaseState::kRestoring && view.state != LeaseState::kEnded);
      if (!view.end_reason.empty()) continue;
      for (const wire::KnobView& knob : view.knobs)
        wanted[knob.request.key].insert(view.id + " " + ToText(knob.request.demand));
    }
    for (const KnobKey& knob : desk_.Keys()) {
      const Claims claims = book_->ClaimsOn(knob);
      std::multiset<std::string> claimed;
      for (const Claim& claim : claims.claims)
        claimed.insert(claim.lease + " " + ToText(claim.demand));
      ASSERT_EQ(claimed, wanted[knob]) << "claims are not the requests of living leases";
      CheckExclusion(claims.claims);
      ASSERT_GE(claims.version, versions_[knob]) << "a version went backwards";
      versions_[knob] = claims.version;
    }
  }

  // After Calm(): every lease has what it asked for, and nobody else has anything.
  void CheckCalm() const {
    for (const LeaseView& view : book_->List(root_, admin_))
      ASSERT_TRUE(view.state == LeaseState::kActive || view.state == LeaseState::kEnded)
          << Name(view.state);
    for (const KnobKey& knob : desk_.Keys()) {
      if (!book_->ClaimsOn(knob).claims.empty()) continue;
      ASSERT_EQ(desk_.present.at(knob), desk_.BaselineOf(knob));
    }
    ASSERT_EQ(book_->CountLeases().restore_pending, 0U);
  }
  void CheckNothingLeft() const {
    ASSERT_TRUE(book_->ClaimedKnobs().empty());
    for (int uid = 1; uid <= 3; ++uid) ASSERT_EQ(book_->CountOf("uid:" + std::to_string(uid)), 0U);
  }
  std::size_t granted() const { return granted_; }

 private:
  static void CheckExclusion(const std::vector<Claim>& claims) {
    std::map<LeaseClass, int> exclusive;
    for (const Claim& claim : claims)
      if (std::holds_alternative<Exactly>(claim.demand)) ++exclusive[claim.lease_class];
    std::size_t holders = 0;
    for (const auto& [lease_class, count] : exclusive) {
      ASSERT_EQ(count, 1) << "two exclusive claims of one class";
      ++holders;
    }
    const Resolution resolution = Resolve(std::nullopt, std::nullopt, claims);
    std::size_t overruled = 0;
    for (const Claim& claim : claims)
      if (std::holds_alternative<Exactly>(claim.demand) &&
          resolution.overruled.contains(claim.lease))
        ++overruled;
    ASSERT_LE(holders - overruled, 1U) << "two exclusive claims in effect";
  }

  void Start() {
    LeaseBook::Options options;
    options.state_file = folder_.path() / "leases.json";
    options.standing_file = folder_.path() / "standing.json";
    options.boot_clock = [this] { return BootTime{"boot", clock_.Now().time_since_epoch()}; };
    options.ended_kept = 5s;
    options.entropy = [this] { return ++ids_; };
    options.is_running = [this](const ProcessIdentity&) { return random_.Below(2) == 0; };
    desk_.woken.clear();
    versions_.clear();
    book_ = std::make_unique<LeaseBook>(clock_, desk_, nullptr, options);
  }

  void Restart() {
    book_.reset();
    Start();
    ASSERT_TRUE(book_->Load().ok());
    // The desk repairs what nobody claims any more.
    for (const KnobKey& knob : desk_.Keys())
      if (book_->ClaimsOn(knob).claims.empty()) desk_.present[knob] = desk_.BaselineOf(knob);
  }

  Caller RandomCaller() {
    const auto uid = static_cast<uid_t>(1 + random_.Below(3));
    Caller caller{.subject = "uid:" + std::to_string(uid), .uid = uid};
    caller.process = ProcessIdentity{.pid = 100 + uid};
    caller.connection = uid;
    return caller;
  }

  KnobRequest RandomRequest(const KnobKey& key) {
    if (key.knob == LeaseKnob::kPersistence) return {key, SwitchedOn{}};
    const double share = random_.Uniform();
    const bool clock = IsClock(key.knob);
    const Setting value =
        clock ? Setting(Hertz::FromMega(600 + 400 * share)) : Setting(Watts(100 + 200 * share));
    if (clock && random_.Below(2) == 0)
      return {key, InRange{std::get<Hertz>(value) * 0.8, std::get<Hertz>(value)}};
    if (random_.Below(2) == 0) return {key, Exactly{value}};
    return {key, AtMost{value}};
  }

  std::vector<KnobRequest> RandomRequests() {
    std::vector<KnobRequest> requests;
    for (const KnobKey& key : desk_.Keys())
      if (random_.Below(4) == 0) requests.push_back(RandomRequest(key));
    return requests;
  }

  void Create() {
    LeaseSpec spec{.name = "walk", .holder = static_cast<HolderKind>(random_.Below(5))};
    if (spec.holder == HolderKind::kJob) spec.job = "job" + std::to_string(random_.Below(3));
    spec.lease_class = static_cast<LeaseClass>(random_.Below(3));
    spec.requests = RandomRequests();
    if (std::holds_alternative<LeaseView>(book_->Create(RandomCaller(), admin_, spec))) ++granted_;
  }

  std::string AnyLease() {
    const auto views = book_->List(root_, admin_);
    return views.empty() ? "none" : views[random_.Below(views.size())].id;
  }

  void Replace() { (void)book_->Replace(RandomCaller(), admin_, AnyLease(), RandomRequests()); }
  void End() { (void)book_->End(RandomCaller(), admin_, AnyLease()); }

  void LoseHolder() {
    const std::uint64_t which = random_.Below(3);
    if (which == 0) book_->ConnectionClosed(1 + random_.Below(3));
    if (which == 1) book_->ProcessEnded(AnyLease());
    if (which == 2) book_->JobEnded("job" + std::to_string(random_.Below(3)));
  }

  // A device begins or ceases to refuse or to be in maintenance.
  void Disturb() {
    const auto keys = desk_.Keys();
    const KnobKey knob = keys[random_.Below(keys.size())];
    if (random_.Below(2) == 0) {
      if (desk_.refusing.erase(knob) == 0 && random_.Below(3) == 0) desk_.refusing.insert(knob);
    } else if (desk_.suspended.erase(knob.device) == 0 && random_.Below(3) == 0) {
      desk_.suspended.insert(knob.device);
    }
    desk_.woken.insert(knob);
  }

  void SettleOne() {
    if (desk_.woken.empty()) return;
    auto knob = desk_.woken.begin();
    std::advance(knob, random_.Below(desk_.woken.size()));
    desk_.Settle(*book_, KnobKey(*knob));
  }

  zeus::testing::TemporaryDirectory folder_;
  VirtualClock clock_;
  testing::FakeKnobDesk desk_;
  Random random_;
  std::uint64_t ids_ = 0;
  std::size_t granted_ = 0;
  Caller root_{.subject = "uid:0", .uid = 0};
  Grant admin_{.scopes = {Scope::kAdmin}, .all_devices = true};
  mutable std::map<KnobKey, std::uint64_t> versions_{};
  std::unique_ptr<LeaseBook> book_;
};

void Walk(std::uint64_t seed, int steps) {
  RandomWalk walk(seed);
  for (int i = 0; i < steps; ++i) {
    walk.Step();
    walk.CheckInvariants();
    if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    if (i % 200 != 199) continue;
    walk.Calm();
    walk.CheckInvariants();
    walk.CheckCalm();
    if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", calm at " << i;
  }
  walk.EndEverything();
  walk.Calm();
  walk.CheckCalm();
  walk.CheckNothingLeft();
  EXPECT_GT(walk.granted(), static_cast<std::size_t>(steps) / 100) << "the walk tests nothing";
}

TEST(LeaseBookRandomTest, WhatMustAlwaysHoldHoldsAfterEveryStep) {
  const std::uint64_t walks = zeus::testing::kSanitized ? 1 : 3;
  for (std::uint64_t seed = 1; seed <= walks; ++seed) {
    Walk(seed, 1000);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace zeus::daemon::lease_book_random_test
