// A member says {"hello"} with its share so far, {"end"} when its command has ended, and
// {"share"} with its measurement. The chair answers {"welcome"} or {"refused"}, says {"over"} when
// all commands have ended, and {"received"} for a measurement. Whoever loses the chair looks for
// the one of the next term, and takes the chair itself where there is none.
#include "zeus/ranks/rank_meeting.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "zeus/base/json.h"

namespace zeus {
namespace {

constexpr Seconds kAttempt{3};        // To connect and be greeted.
constexpr Seconds kAttempts{4};       // Then the chair of a term is taken for dead.
constexpr Seconds kIntroduction{10};  // For a guest to say who it is.
constexpr std::size_t kLongestHello = std::size_t{1} << 20U;
constexpr int kLongestWait = 100;  // Milliseconds: files are looked for so often.
constexpr int kRetryWait = 10;

void Signal(int event) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event, &one, sizeof one);
}

void Clear(int event) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event, &count, sizeof count);
}

}  // namespace

RankMeeting::RankMeeting(Clock& clock, RankPlace place, RankShare here, Result<MeetingPoint> point,
                         MeetingTimes times)
    : clock_(clock),
      place_(std::move(place)),
      times_(times),
      share_(std::move(here)),
      point_(std::move(point)),
      table_(place_.size, times),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (point_.ok()) {
    if (place_.rank == 0) {
      point_.value().Dissolve(0);  // Left by a launch of the same name that was killed.
      TakeChair();
    }
    ticker_ = std::make_unique<Ticker>("zeus-ranks", [this] { return Step(); });
  } else {
    remarks_.push_back(point_.error().message);
  }
}

RankMeeting::~RankMeeting() {
  if (!ticker_) return;
  Signal(wake_.get());
  ticker_.reset();
  if (listener_) point_.value().Dissolve(term_);
}

// --- for the owner ---

bool RankMeeting::Met() const {
  const std::lock_guard guard(mutex_);
  return greeted_ || listener_ != nullptr;
}

void RankMeeting::End() {
  const std::lock_guard guard(mutex_);
  if (ended_) return;
  ended_ = true;
  ended_at_ = clock_.Now();
  if (listener_) table_.End(place_.rank, *ended_at_);
  if (chair_ && greeted_) chair_->Send({{"end", true}});
  if (!ticker_) SetOver();
  Signal(wake_.get());
}

bool RankMeeting::Over() const {
  const std::lock_guard guard(mutex_);
  return over_;
}

void RankMeeting::Deliver(RankShare share) {
  const std::lock_guard guard(mutex_);
  const TimePoint now = clock_.Now();
  ended_ = delivered_ = true;
  if (!ended_at_) ended_at_ = now;
  share_ = std::move(share);
  if (listener_) table_.Deliver(share_, now);
  if (chair_ && greeted_) chair_->Send({{"share", ToJson(share_)}});
  if (!ticker_) Decide(Outcome::kReport);
  Signal(wake_.get());
}

RankMeeting::Outcome RankMeeting::outcome() const {
  const std::lock_guard guard(mutex_);
  return outcome_;
}

std::vector<RankShare> RankMeeting::TakeShares() {
  const std::lock_guard guard(mutex_);
  if (listener_) return table_.Shares();
  return {share_};
}

std::vector<std::string> RankMeeting::Remarks() const {
  const std::lock_guard guard(mutex_);
  return remarks_;
}

void RankMeeting::ClearNews() { Clear(news_.get()); }

// --- the thread ---

void RankMeeting::Decide(Outcome outcome) {
  outcome_ = outcome;
  Signal(news_.get());
}

void RankMeeting::SetOver() {
  over_ = true;
  Signal(news_.get());
}

TimePoint RankMeeting::Step() {
  AwaitTraffic();
  const std::lock_guard guard(mutex_);
  const TimePoint now = clock_.Now();
  if (outcome_ != Outcome::kUndecided) return Ticker::kWhenWoken;
  Advance(now);
  return now;
}

void RankMeeting::AwaitTraffic() {
  std::vector<::pollfd> polled{{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  int timeout = kLongestWait;
  {
    const std::lock_guard guard(mutex_);
    const auto add = [&](const LineConnection& connection) {
      const int events = connection.sent_all() ? POLLIN : POLLIN | POLLOUT;
      polled.push_back(
          {.fd = connection.descriptor(), .events = static_cast<short>(events), .revents = 0});
    };
    if (chair_) add(*chair_);
    for (const Guest& guest : guests_) add(*guest.connection);
    if (listener_)
      polled.push_back({.fd = listener_->descriptor(), .events = POLLIN, .revents = 0});
    // Nothing announces that a file has appeared.
    if (ended_ && !chair_ && !listener_) timeout = kRetryWait;
  }
  ::poll(polled.data(), polled.size(), timeout);
  Clear(wake_.get());
}

void RankMeeting::Advance(TimePoint now) {
  if (listener_)
    StepAsChair(now);
  else
    StepAsMember(now);
}

// --- as a member ---

void RankMeeting::StepAsMember(TimePoint now) {
  if (chair_) {
    const bool alive = chair_->Pump();
    while (chair_) {
      const auto message = chair_->Next();
      if (!message) break;
      Hear(*message);
    }
    if (chair_ && !alive && greeted_) {
      NextTerm(now);
    } else if (chair_ && (!alive || (!greeted_ && now > attempt_ + kAttempt))) {
      chair_.reset();  // Try the next address.
    }
  }
  if (outcome_ != Outcome::kUndecided) return;
  if (!chair_ && !refused_) Seek(now);
  if (!listener_) GiveUpIfLate(now);
}

void RankMeeting::NextTerm(TimePoint now) {
  chair_.reset();
  if (greeted_) alone_since_ = now;
  if (greeted_ && table_.Knows(chair_share_.rank)) lost_.push_back(chair_share_);
  greeted_ = false;
  next_host_ = 0;
  first_attempt_.reset();
  if (point_.value().has_term(term_ + 1)) ++term_;
}

void RankMeeting::Hear(const Json& message) {
  if (const auto welcome = message.find("welcome"); welcome != message.end()) {
    greeted_ = true;
    Signal(news_.get());
    if (auto share = RankShareFromJson(*welcome); share.ok())
      chair_share_ = std::move(share).value();
    if (ended_ && !delivered_) chair_->Send({{"end", true}});
    if (delivered_) chair_->Send({{"share", ToJson(share_)}});
  } else if (message.contains("over")) {
    SetOver();
  } else if (message.contains("received")) {
    Decide(Outcome::kReported);
  } else if (const auto refused = message.find("refused"); refused != message.end()) {
    remarks_.push_back(fmt::format("rank {} was refused by the others: {}", place_.rank,
                                   refused->is_string() ? refused->get<std::string>() : ""));
    refused_ = true;
    chair_.reset();
    greeted_ = false;
  }
}

void RankMeeting::Seek(TimePoint now) {
  const auto address = point_.value().Find(term_);
  if (address && !address->hosts.empty()) {
    if (!first_attempt_) first_attempt_ = now;
    // Every address has had its chance, and a chair that just begins a second one.
    if (now > *first_attempt_ + kAttempts && next_host_ >= address->hosts.size() &&
        point_.value().has_term(term_ + 1)) {
      NextTerm(now);
      return;
    }
    Connect(*address, now);
  } else if (term_ > 0) {
    TakeChair();
  } else if (ended_at_ && now > *ended_at_ + times_.absence && point_.value().has_term(1)) {
    NextTerm(now);  // Rank 0 is nowhere.
  }
}

void RankMeeting::Connect(const MeetingAddress& address, TimePoint now) {
  const std::string& host = address.hosts[next_host_++ % address.hosts.size()];
  auto connection = LineConnection::Connect(host, address.port);
  attempt_ = now;
  if (!connection.ok()) return;
  chair_ = std::move(connection).value();
  greeted_ = false;
  chair_->Send({{"hello", 1}, {"token", address.token}, {"share", ToJson(share_)}});
}

// Without a chair that answers, a rank reports alone.
void RankMeeting::GiveUpIfLate(TimePoint now) {
  if (!ended_at_ || greeted_) return;
  const Seconds search =
      point_.value().has_term(term_ + 1) ? 2 * times_.absence + kAttempts : times_.absence;
  const TimePoint since = std::max(*ended_at_, alone_since_);
  // A rank that has met others measures on for them; the wait for strangers is not part of the run.
  const bool has_met = table_.Knows(chair_share_.rank);
  const Seconds measured = has_met ? search : std::min(times_.measured_absence, search);
  if (!over_ && (refused_ || now > since + measured)) SetOver();
  if (!refused_ && now <= since + search) return;
  if (!delivered_) return;
  if (!refused_)
    remarks_.push_back(
        fmt::format("the other ranks could not be reached {}", point_.value().Where()));
  Decide(Outcome::kReport);
}

// --- as the chair ---

bool RankMeeting::TakeChair() {
  auto listener = LineListener::Open(point_.value().port());
  if (!listener.ok()) {
    remarks_.push_back(listener.error().message);
    return false;
  }
  auto token = point_.value().Claim(term_, listener.value()->port());
  if (!token.ok()) {
    if (token.error().code != ErrorCode::kConflict) remarks_.push_back(token.error().message);
    return false;
  }
  for (int term = 0; term < term_; ++term) point_.value().Dissolve(term);
  Signal(news_.get());
  token_ = std::move(token).value();
  listener_ = std::move(listener).value();
  const TimePoint now = clock_.Now();
  for (RankShare& share : lost_) {
    const int rank = share.rank;
    table_.Arrive(std::move(share));
    table_.Leave(rank);
  }
  lost_.clear();
  if (delivered_) {
    table_.Deliver(share_, now);
  } else {
    table_.Arrive(share_);
    if (ended_) table_.End(place_.rank, now);
  }
  return true;
}

void RankMeeting::Accept(RankShare share, TimePoint now) {
  if (!table_.Knows(share.rank) || share.rank == place_.rank) return;
  if (share.measurement)
    table_.Deliver(std::move(share), now);
  else if (!table_.Present(share.rank))
    table_.Arrive(std::move(share));
}

void RankMeeting::StepAsChair(TimePoint now) {
  Welcome(now);
  for (Guest& guest : guests_) {
    const bool alive = guest.connection->Pump();
    bool stays = true;
    while (stays) {
      const auto message = guest.connection->Next();
      if (!message) break;
      stays = HearGuest(guest, *message, now);
    }
    const bool silent = !guest.rank && now > guest.since + kIntroduction;
    if (alive && stays && !silent) continue;
    guest.connection->Pump();  // A refusal is heard.
    if (guest.rank) table_.Leave(*guest.rank);
    guest.connection.reset();
  }
  std::erase_if(guests_, [](const Guest& guest) { return guest.connection == nullptr; });
  TellOver(now);
  CloseIfComplete(now);
}

void RankMeeting::Welcome(TimePoint now) {
  while (auto connection = listener_->Accept()) {
    connection->LimitLinesTo(kLongestHello);
    guests_.push_back({.connection = std::move(connection), .rank = std::nullopt, .since = now});
  }
}

// Whether the guest may stay.
bool RankMeeting::HearGuest(Guest& guest, const Json& message, TimePoint now) {
  if (!guest.rank) return Admit(guest, message, now);
  if (message.contains("end")) {
    table_.End(*guest.rank, now);
  } else if (const auto found = message.find("share"); found != message.end()) {
    auto share = RankShareFromJson(*found);
    if (!share.ok()) return false;
    const bool own = share.value().rank == *guest.rank;
    Accept(std::move(share).value(), now);
    if (own) guest.connection->Send({{"received", true}});
  }
  return true;
}

bool RankMeeting::Admit(Guest& guest, const Json& message, TimePoint now) {
  const auto token = GetField<std::string>(message, "token");
  const auto found = message.find("share");
  if (!token.ok() || token.value() != token_ || found == message.end()) return false;
  auto share = RankShareFromJson(*found);
  std::string reason;
  if (!share.ok()) {
    reason = share.error().message;
  } else if (!table_.Knows(share.value().rank)) {
    reason = fmt::format("there are {} ranks, and rank {} is none of them", place_.size,
                         share.value().rank);
  } else if (std::ranges::any_of(
                 guests_, [&](const Guest& other) { return other.rank == share.value().rank; })) {
    reason = fmt::format("there is another rank {}", share.value().rank);
  }
  if (!reason.empty()) {
    guest.connection->Send({{"refused", reason}});
    return false;
  }
  guest.rank = share.value().rank;
  guest.connection->LimitLinesTo(LineConnection::kLongestLine);
  guest.connection->Send({{"welcome", ToJson(share_)}});
  if (share.value().measurement || !table_.Present(*guest.rank))
    Accept(std::move(share).value(), now);
  return true;
}

void RankMeeting::TellOver(TimePoint now) {
  if (!over_ && table_.Over(now)) SetOver();
  if (!over_) return;
  for (Guest& guest : guests_) {
    if (!guest.rank || guest.told_over) continue;
    guest.connection->Send({{"over", true}});
    guest.connection->Pump();
    guest.told_over = true;
  }
}

void RankMeeting::CloseIfComplete(TimePoint now) {
  if (!delivered_ || !table_.Complete(now)) return;
  for (Guest& guest : guests_) guest.connection->Pump();
  if (table_.Incomplete())
    remarks_.push_back(fmt::format("ranks that are missing were awaited for {:g} s {}",
                                   times_.absence.count(), point_.value().Where()));
  Decide(Outcome::kReport);
}

}  // namespace zeus
