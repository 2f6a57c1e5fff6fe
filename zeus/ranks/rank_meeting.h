#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/ranks/line_connection.h"
#include "zeus/ranks/meeting_point.h"
#include "zeus/ranks/rank_place.h"
#include "zeus/ranks/rank_share.h"
#include "zeus/ranks/rank_table.h"

namespace zeus {

// The ranks of a launch meet while their commands run, so that one of them can report for all. No
// command waits for the meeting: it begins in the background. Rank 0 is the chair; when it is
// killed, another rank takes its place. A rank that meets nobody reports for itself. Thread-safe.
class RankMeeting {
 public:
  // `here` says who this rank is and what it can measure. `clock` must outlive the meeting.
  RankMeeting(Clock& clock, RankPlace place, RankShare here, Result<MeetingPoint> point,
              MeetingTimes times = {});
  ~RankMeeting();
  RankMeeting(const RankMeeting&) = delete;
  RankMeeting& operator=(const RankMeeting&) = delete;

  // Whether this rank has met the chair, or is the chair itself.
  bool Met() const;

  // The command of this rank has ended, or was lost: its devices are measured on until Over().
  void End();
  bool Over() const;

  // Takes the measurement of this rank, once.
  void Deliver(RankShare share);

  enum class Outcome {
    kUndecided,  // Ask again later.
    kReported,   // Another rank reports: there is nothing more to do.
    kReport,     // This rank reports what TakeShares() returns.
  };
  Outcome outcome() const;
  std::vector<RankShare> TakeShares();
  // Sentences for the report, as that ranks could not meet and why.
  std::vector<std::string> Remarks() const;

  // Readable when Met(), Over() or outcome() may have changed.
  int descriptor() const { return news_.get(); }
  void ClearNews();

 private:
  // A connection of a chair to a member, or to somebody who has not said yet who he is.
  struct Guest {
    std::unique_ptr<LineConnection> connection;
    std::optional<int> rank;
    TimePoint since;
    bool told_over = false;
  };

  TimePoint Step();
  void AwaitTraffic();
  void Advance(TimePoint now);
  void Decide(Outcome outcome);
  void SetOver();

  // As a member.
  void StepAsMember(TimePoint now);
  void Seek(TimePoint now);
  void Connect(const MeetingAddress& address, TimePoint now);
  void NextTerm(TimePoint now);
  void Hear(const Json& message);
  void GiveUpIfLate(TimePoint now);

  // As the chair.
  bool TakeChair();
  void StepAsChair(TimePoint now);
  void Welcome(TimePoint now);
  bool HearGuest(Guest& guest, const Json& message, TimePoint now);
  bool Admit(Guest& guest, const Json& message, TimePoint now);
  void Accept(RankShare share, TimePoint now);
  void TellOver(TimePoint now);
  void CloseIfComplete(TimePoint now);

  Clock& clock_;
  const RankPlace place_;
  const MeetingTimes times_;

  mutable std::mutex mutex_;  // Guards everything below but the descriptors and the ticker.
  RankShare share_;
  Result<MeetingPoint> point_;
  bool ended_ = false;      // The command has ended.
  bool delivered_ = false;  // share_ has its measurement.
  bool over_ = false;
  std::optional<TimePoint> ended_at_;
  TimePoint alone_since_{};  // When the latest chair was lost.
  Outcome outcome_ = Outcome::kUndecided;
  std::vector<std::string> remarks_;

  int term_ = 0;
  std::unique_ptr<LineConnection> chair_;  // The connection of a member to the chair.
  bool greeted_ = false;                   // The chair has answered.
  bool refused_ = false;
  std::size_t next_host_ = 0;
  TimePoint attempt_{};                     // When the present connection was begun.
  std::optional<TimePoint> first_attempt_;  // In this term.
  RankShare chair_share_{.rank = -1};       // The chair, as far as known.
  std::vector<RankShare> lost_;             // Chairs that were lost.

  std::unique_ptr<LineListener> listener_;  // The chair listens here.
  std::string token_;
  std::vector<Guest> guests_;
  RankTable table_;

  FileDescriptor wake_;
  FileDescriptor news_;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace zeus
