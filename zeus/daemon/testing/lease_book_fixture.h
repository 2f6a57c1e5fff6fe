#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/daemon/lease_book.h"
#include "zeus/daemon/testing/fake_knob_desk.h"

namespace zeus::daemon::testing {

using wire::HolderKind;
using wire::KnobKey;
using wire::KnobRequest;
using wire::KnobValue;
using wire::LeaseKnob;
using wire::LeaseRefusal;
using wire::LeaseSpec;
using wire::LeaseView;

inline const KnobKey kLimit1{"GPU-1", LeaseKnob::kGpuPowerLimit};
inline const KnobKey kLimit2{"GPU-2", LeaseKnob::kGpuPowerLimit};
inline const KnobKey kClock1{"GPU-1", LeaseKnob::kGraphicsClock};
inline const KnobKey kCpu{"cpu:0", LeaseKnob::kCpuPowerLimit};

inline Caller UserCaller(uid_t uid, std::int64_t pid = 100) {
  Caller caller{.subject = "uid:" + std::to_string(uid), .uid = uid};
  caller.process = ProcessIdentity{.pid = pid, .start_ticks = 7, .pid_namespace = "pid:[1]"};
  caller.connection = static_cast<std::uint64_t>(pid);
  return caller;
}

inline Grant GrantOf(ScopeSet scopes) {
  Grant grant{.scopes = scopes, .all_devices = true};
  return grant;
}

inline LeaseSpec SpecOf(std::vector<KnobRequest> requests,
                        HolderKind holder = HolderKind::kProcess) {
  LeaseSpec spec{.name = "bert", .holder = holder};
  spec.requests = std::move(requests);
  return spec;
}

template <class T>
T Granted(const OrRefusal<T>& outcome) {
  if (const auto* refusal = std::get_if<LeaseRefusal>(&outcome)) {
    ADD_FAILURE() << "refused: " << refusal->message;
    return T();
  }
  return std::get<T>(outcome);
}

template <class T>
LeaseRefusal RefusalOf(const OrRefusal<T>& outcome) {
  if (const auto* refusal = std::get_if<LeaseRefusal>(&outcome)) return *refusal;
  ADD_FAILURE() << "not refused";
  return {};
}

// A book over a fake desk, on a clock that stands still until a test moves it, with two users and
// an administrator.
class LeaseBookFixture : public ::testing::Test {
 protected:
  LeaseBookFixture() { Restart(); }

  LeaseBook::Options OptionsOf() {
    LeaseBook::Options options;
    options.state_file = folder_.path() / "leases.json";
    options.standing_file = folder_.path() / "standing.json";
    options.boot_clock = [this] { return BootTime{boot_, clock_.Now().time_since_epoch()}; };
    options.devices_of = [this](const Caller&) { return devices_of_jobs_; };
    options.is_running = [this](const ProcessIdentity& p) { return running_.contains(p.pid); };
    options.owner_of = [this](const ProcessIdentity& p) -> std::optional<uid_t> {
      return p.pid == 200 ? std::optional<uid_t>(1001) : std::nullopt;
    };
    options.job_runs = [this](std::string_view job) { return !jobs_ || jobs_->contains(job); };
    options.entropy = [this] { return ++ids_; };
    options.changed = [this](const std::string& lease) { changed_.push_back(lease); };
    return options;
  }
  // The daemon is killed and starts again: nothing is written on the way out.
  void Kill() {
    std::filesystem::copy(folder_.path(), copy_.path(),
                          std::filesystem::copy_options::overwrite_existing);
    book_.reset();
    std::filesystem::copy(copy_.path(), folder_.path(),
                          std::filesystem::copy_options::overwrite_existing);
  }
  void Restart() {
    book_.reset();
    desk_.woken.clear();
    book_ = std::make_unique<LeaseBook>(clock_, desk_, nullptr, OptionsOf());
  }

  LeaseView Create(const LeaseSpec& spec) { return Granted(book_->Create(ann_, control_, spec)); }
  LeaseView CreateActive(const LeaseSpec& spec) {
    const LeaseView created = Create(spec);
    desk_.SettleAll(*book_);
    return ViewOf(created.id);
  }
  LeaseView ViewOf(const std::string& id) { return Granted(book_->View(root_, admin_, id)); }
  KnobValue PresentOf(const KnobKey& knob) { return *desk_.present.at(knob); }

  zeus::testing::TemporaryDirectory folder_;
  zeus::testing::TemporaryDirectory copy_;
  VirtualClock clock_;
  std::string boot_ = "boot-1";
  FakeKnobDesk desk_;
  std::set<std::string> devices_of_jobs_{};
  std::optional<std::set<std::string, std::less<>>> jobs_{};  // Those that run; nullopt: all.
  std::set<std::int64_t> running_{};
  std::vector<std::string> changed_{};
  std::uint64_t ids_ = 0;
  const Caller ann_ = UserCaller(1001);
  const Caller bob_ = UserCaller(1002, 101);
  const Caller root_ = UserCaller(0, 1);
  const Grant control_ = GrantOf({Scope::kGpuControl, Scope::kCpuControl});
  const Grant admin_ = GrantOf({Scope::kAdmin});
  std::unique_ptr<LeaseBook> book_;
};

}  // namespace zeus::daemon::testing
