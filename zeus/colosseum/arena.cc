#include "zeus/colosseum/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/ticker.h"
#include "zeus/colosseum/draw.h"

namespace zeus::colosseum {
namespace {

constexpr Seconds kHeartbeat{15};  // A stream is never silent for longer: proxies cut those.
constexpr Seconds kRestPeriod{1};
constexpr Seconds kLinger{60};  // An answered duel can be followed again for so long.
constexpr std::size_t kLongestAnswer = std::size_t{1} << 20;  // Bytes that are kept of an answer.
constexpr Seconds kLeastBoardPeriod{0.2};
constexpr double kBoardShare = 20;  // Computing the board takes this part of the time at most.
constexpr int kSweepSize = 100;
constexpr std::uint64_t kBoardSeed = 2023;

constexpr const char* kNobodyFollowed = "nobody followed it";
constexpr const char* kServerEnded = "the server was ended";

Refusal Refuse(Refusal::Kind kind, std::string message) {
  return {.kind = kind, .message = std::move(message)};
}

// The reason of the database is for the log: it may name files and hosts.
Refusal RefuseByStore(const Error& error) {
  if (error.code == ErrorCode::kNotFound)
    return Refuse(Refusal::Kind::kUnknown, "there is no such duel");
  log::Warning("duels: {}", error.message);
  return Refuse(Refusal::Kind::kUnavailable, "the database cannot be used now: ask again");
}

Refusal ToRefusal(VoteRefusal refusal) {
  const bool gone = refusal.kind == VoteRefusal::Kind::kGone;
  return Refuse(gone ? Refusal::Kind::kGone : Refusal::Kind::kConflict, std::move(refusal.message));
}

std::optional<Refusal> RefusePrompt(const std::string& prompt, std::size_t longest) {
  if (Trim(prompt).empty())
    return Refuse(Refusal::Kind::kInvalid, "prompt: is empty: ask the models something");
  if (prompt.size() > longest)
    return Refuse(
        Refusal::Kind::kInvalid,
        fmt::format("prompt: is {} bytes long, and {} are the most", prompt.size(), longest));
  if (prompt.find('\0') != std::string::npos)
    return Refuse(Refusal::Kind::kInvalid, "prompt: holds a zero byte");
  return std::nullopt;
}

// A position of a client moved to the beginning of a character that was shown.
std::size_t Aligned(const std::string& text, std::size_t position, std::size_t shown) {
  position = std::min(position, shown);
  while (position < shown && (static_cast<unsigned char>(text[position]) & 0xC0U) == 0x80U)
    ++position;
  return position;
}

}  // namespace

// A duel whose answers arrive, or have arrived a moment ago. Thread-safe.
class Arena::ActiveDuel {
 public:
  ActiveDuel(const Challenge& challenge, std::string id, std::array<std::string, 2> models,
             const ArenaOptions& options, TimePoint now)
      : id_(std::move(id)),
        caller_(challenge.caller),
        prompt_(challenge.prompt),
        preference_(challenge.preference),
        models_(std::move(models)),
        begun_(now),
        pacer_(options.pace, options.characters_per_second),
        followed_at_(now),
        told_at_(now) {}

  const std::string& id() const { return id_; }
  const std::string& caller() const { return caller_; }
  const std::string& model(Side side) const { return models_[Index(side)]; }
  bool IsAbout(const Challenge& challenge) const {
    return prompt_ == challenge.prompt && preference_ == challenge.preference;
  }

  void SetAnswer(Side side, ModelHost::AnswerId answer) {
    const std::lock_guard lock(mutex_);
    sides_[Index(side)].answer = answer;
  }
  std::vector<ModelHost::AnswerId> RunningAnswers() const {
    const std::lock_guard lock(mutex_);
    std::vector<ModelHost::AnswerId> answers;
    for (const SideState& side : sides_)
      if (side.answer && !side.outcome) answers.push_back(*side.answer);
    return answers;
  }

  void AddText(Side side, std::string_view piece) {
    const std::lock_guard lock(mutex_);
    ArrivingText& text = sides_[Index(side)].text;
    if (text.text().size() < kLongestAnswer) text.Append(piece);
  }
  void EndText(Side side) {
    const std::lock_guard lock(mutex_);
    SideState& state = sides_[Index(side)];
    state.text.Finish();
    state.text_is_over = true;
  }
  // Returns whether this was the last answer that was awaited.
  bool EndAnswer(Side side, Result<Contestant> outcome) {
    const std::lock_guard lock(mutex_);
    sides_[Index(side)].outcome = std::move(outcome);
    return sides_[0].outcome && sides_[1].outcome;
  }
  // Both answers, or the reason of the first failure. Called when both have ended.
  Result<std::array<Contestant, 2>> Answers() const {
    const std::lock_guard lock(mutex_);
    std::array<Contestant, 2> answers;
    for (const Side side : kSides) {
      const SideState& state = sides_[Index(side)];
      if (!state.outcome->ok()) return state.outcome->error();
      Contestant& answer = answers[Index(side)];
      answer = state.outcome->value();
      answer.model = models_[Index(side)];
      answer.text = state.text.text();
    }
    return answers;
  }

  // Followers hear of the end, which is stored already. Later calls do nothing.
  void End(std::string_view stage, TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (ended_at_) return;
    stage_ = stage;
    ended_at_ = now;
  }
  // Both answers may fail: the first call returns true, and its caller stores the failure.
  bool ClaimFailure() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(has_failed_, true);
  }
  bool is_answering() const {
    const std::lock_guard lock(mutex_);
    return !ended_at_;
  }
  bool MayBeForgotten(TimePoint now) const {
    const std::lock_guard lock(mutex_);
    return ended_at_ && now - *ended_at_ > kLinger && (followers_.empty() || told_end_);
  }
  // Whether there is nothing more to show.
  bool is_at_rest() const {
    const std::lock_guard lock(mutex_);
    return told_end_;
  }
  // The answers must end, for the reason of the server.
  void Stop() {
    const std::lock_guard lock(mutex_);
    if (reason_to_end_.empty()) reason_to_end_ = kServerEnded;
  }
  // Whether the answers must end now. The first reason is remembered.
  bool MustEnd(const ArenaOptions& options, TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (ended_at_) return false;
    if (!reason_to_end_.empty()) return true;
    const bool complete = sides_[0].text_is_over && sides_[1].text_is_over;
    if (now - begun_ > options.answer_time)
      reason_to_end_ = "the answers took too long";
    else if (followers_.empty() && !complete && now - followed_at_ > options.absence)
      reason_to_end_ = kNobodyFollowed;
    return !reason_to_end_.empty();
  }
  // Whether nothing has failed and nothing has ended it.
  bool is_wanted() const {
    const std::lock_guard lock(mutex_);
    return !has_failed_ && reason_to_end_.empty();
  }
  // Empty: nothing but the answers themselves ends it.
  std::string reason_to_end() const {
    const std::lock_guard lock(mutex_);
    return reason_to_end_;
  }

  void Add(const std::shared_ptr<FollowerOfDuel>& follower) {
    const std::lock_guard lock(mutex_);
    followers_.push_back(follower);
  }
  void Remove(const FollowerOfDuel* follower, TimePoint now) {
    const std::lock_guard lock(mutex_);
    std::erase_if(followers_, [&](const auto& one) {
      const auto held = one.lock();
      return !held || held.get() == follower;
    });
    followed_at_ = now;
  }

  // Releases text. Returns the followers that there is news for.
  std::vector<std::shared_ptr<FollowerOfDuel>> Step(TimePoint now) {
    const std::lock_guard lock(mutex_);
    const std::array<Arrival, 2> arrivals = {ArrivalOf(sides_[0]), ArrivalOf(sides_[1])};
    const auto characters = pacer_.Release(arrivals, now);
    bool news = false;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t shown = sides_[i].text.ByteOffset(characters[i]);
      news = news || shown != sides_[i].shown;
      sides_[i].shown = shown;
    }
    if (IsOver() && !std::exchange(told_end_, true)) news = true;
    if (now - told_at_ > kHeartbeat) news = true;
    if (news) told_at_ = now;
    std::vector<std::shared_ptr<FollowerOfDuel>> told;
    if (!news) return told;
    for (const auto& one : followers_)
      if (auto follower = one.lock()) told.push_back(std::move(follower));
    return told;
  }

  Follower::News NewsSince(const Follower::Position& from) const {
    const std::lock_guard lock(mutex_);
    Follower::News news;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string& text = sides_[i].text.text();
      const std::size_t begin = Aligned(text, from[i], sides_[i].shown);
      news.text[i] = text.substr(begin, sides_[i].shown - begin);
      news.position[i] = sides_[i].shown;
    }
    if (IsOver()) news.stage = stage_;
    return news;
  }

 private:
  struct SideState {
    std::optional<ModelHost::AnswerId> answer{};
    ArrivingText text{};
    bool text_is_over = false;
    std::optional<Result<Contestant>> outcome{};
    std::size_t shown = 0;  // Bytes.
  };

  static Arrival ArrivalOf(const SideState& side) {
    return {.characters = side.text.characters(), .complete = side.text_is_over};
  }
  // A failure is told at once, everything else after the last text. Needs mutex_.
  bool IsOver() const {
    if (!ended_at_) return false;
    if (stage_ == "failed") return true;
    return std::ranges::all_of(
        sides_, [](const SideState& side) { return side.shown == side.text.text().size(); });
  }

  const std::string id_;
  const std::string caller_;
  const std::string prompt_;
  const std::string preference_;
  const std::array<std::string, 2> models_;
  const TimePoint begun_;

  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  std::array<SideState, 2> sides_{};
  Pacer pacer_;
  // Followers hold the duel: a duel that held them would never go away with one that did not leave.
  std::vector<std::weak_ptr<FollowerOfDuel>> followers_{};
  TimePoint followed_at_;  // When the last follower left.
  std::string stage_{};    // Valid once ended_at_ is set.
  std::optional<TimePoint> ended_at_{};
  TimePoint told_at_;  // When followers heard something.
  bool told_end_ = false;
  bool has_failed_ = false;
  std::string reason_to_end_{};
};

class Arena::FollowerOfDuel final : public Follower {
 public:
  FollowerOfDuel(std::shared_ptr<ActiveDuel> duel, Position from, std::function<void()> notify,
                 const Clock& clock)
      : duel_(std::move(duel)), notify_(std::move(notify)), clock_(clock), position_(from) {}

  News Pull() override {
    const std::lock_guard lock(mutex_);
    News news = duel_->NewsSince(position_);
    position_ = news.position;
    return news;
  }
  void Leave() override { duel_->Remove(this, clock_.Now()); }

  void Notify() const { notify_(); }

 private:
  const std::shared_ptr<ActiveDuel> duel_;
  const std::function<void()> notify_;
  const Clock& clock_;
  std::mutex mutex_;
  Position position_;  // Guarded by mutex_.
};

namespace {

// Follows a duel whose text is not here any more.
class FollowerOfPast final : public Follower {
 public:
  explicit FollowerOfPast(std::string stage) : stage_(std::move(stage)) {}
  News Pull() override { return {.stage = stage_}; }
  void Leave() override {}

 private:
  const std::string stage_;
};

}  // namespace

class Arena::Listener final : public AnswerListener {
 public:
  Listener(Arena& arena, std::shared_ptr<ActiveDuel> duel, Side side)
      : arena_(arena), duel_(std::move(duel)), side_(side) {}

  void OnText(std::string_view piece) override { duel_->AddText(side_, piece); }
  void OnTextEnd() override { duel_->EndText(side_); }
  void OnEnd(Result<Contestant> outcome) override {
    arena_.OnAnswerEnd(duel_, side_, std::move(outcome));
  }

 private:
  Arena& arena_;
  const std::shared_ptr<ActiveDuel> duel_;
  const Side side_;
};

Arena::Arena(DuelRepository& repository, ModelHost& host, const Clock& clock, Entropy entropy,
             ArenaOptions options)
    : repository_(repository),
      host_(host),
      clock_(clock),
      entropy_(std::move(entropy)),
      options_(std::move(options)),
      random_(entropy_()) {}

Arena::~Arena() {
  Stop();
  std::unique_lock lock(mutex_);
  wake_ = nullptr;
  answer_ended_.wait(lock, [this] { return running_answers_ == 0; });
}

void Arena::Stop() {
  std::vector<std::shared_ptr<ActiveDuel>> active;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const auto& [id, duel] : active_) active.push_back(duel);
  }
  for (const auto& duel : active) {
    duel->Stop();
    for (const ModelHost::AnswerId answer : duel->RunningAnswers()) host_.Abort(answer);
  }
}

void Arena::WakeBy(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void Arena::Wake() {
  const std::lock_guard lock(mutex_);
  if (wake_) wake_();
}

std::shared_ptr<Arena::ActiveDuel> Arena::FindActive(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = active_.find(id);
  return found == active_.end() ? nullptr : found->second;
}

void Arena::Remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  active_.erase(id);
}

Outcome<std::vector<std::string>> Arena::Models() {
  auto models = host_.Models();
  if (models.ok()) return std::move(models).value();
  log::Warning("the models cannot be listed: {}", models.error().message);
  return Refuse(Refusal::Kind::kUnavailable,
                "the gateway of the models does not answer: ask again");
}

Outcome<std::array<std::string, 2>> Arena::Draw(const std::string& preference) {
  auto models = Models();
  if (auto* refusal = std::get_if<Refusal>(&models)) return std::move(*refusal);
  const std::lock_guard lock(mutex_);
  auto pair = DrawPair(std::get<0>(models), preference, random_);
  if (pair.ok()) return std::move(pair).value();
  return Refuse(pair.error().code == ErrorCode::kNotFound ? Refusal::Kind::kInvalid
                                                          : Refusal::Kind::kUnavailable,
                pair.error().message);
}

Outcome<std::shared_ptr<Arena::ActiveDuel>> Arena::Admit(const std::shared_ptr<ActiveDuel>& duel) {
  const std::lock_guard lock(mutex_);
  if (const auto found = active_.find(duel->id()); found != active_.end()) return found->second;
  if (stopped_) return Refuse(Refusal::Kind::kUnavailable, "the server is about to end");
  std::size_t answering = 0;
  std::size_t of_caller = 0;
  for (const auto& [id, other] : active_) {
    if (!other->is_answering()) continue;
    ++answering;
    if (other->caller() == duel->caller()) ++of_caller;
  }
  const bool crowded = answering >= options_.most_duels;
  if (crowded || (!duel->caller().empty() && of_caller >= options_.most_per_caller)) {
    ++counts_.overloaded;
    return Refuse(Refusal::Kind::kOverloaded,
                  crowded
                      ? fmt::format("{} duels are fought already: try again in a moment", answering)
                      : fmt::format("{} duels of your address are fought already: wait for "
                                    "their answers",
                                    of_caller));
  }
  active_.emplace(duel->id(), duel);
  return duel;
}

Outcome<std::string> Arena::Begin(const Challenge& challenge) {
  if (auto refusal = RefusePrompt(challenge.prompt, options_.longest_prompt)) return *refusal;
  return Start(challenge, challenge.id.empty() ? MakeDuelId(entropy_) : challenge.id);
}

Outcome<std::string> Arena::BeginOrJoin(const Challenge& challenge) {
  if (auto refusal = RefusePrompt(challenge.prompt, options_.longest_prompt)) return *refusal;
  if (const auto active = FindActive(challenge.id)) return Join(*active, challenge);
  return Start(challenge, challenge.id);
}

Outcome<std::string> Arena::Join(const ActiveDuel& active, const Challenge& challenge) {
  if (active.IsAbout(challenge)) return active.id();
  return Refuse(Refusal::Kind::kConflict,
                "request_id: belongs to a duel with another prompt or preference");
}

Outcome<std::string> Arena::Start(const Challenge& challenge, const std::string& id) {
  auto pair = Draw(challenge.preference);
  if (auto* refusal = std::get_if<Refusal>(&pair)) return std::move(*refusal);
  const auto duel = std::make_shared<ActiveDuel>(challenge, id, std::get<0>(std::move(pair)),
                                                 options_, clock_.Now());
  auto admitted = Admit(duel);
  if (auto* refusal = std::get_if<Refusal>(&admitted)) return std::move(*refusal);
  if (std::get<0>(admitted) != duel) return Join(*std::get<0>(admitted), challenge);
  const WallTime now = clock_.WallNow();
  Duel record{.id = id,
              .created_at = now,
              .preference = challenge.preference,
              .prompt = options_.store_text ? challenge.prompt : std::string(),
              .stage = Answering{},
              .stage_at = now};
  for (const Side side : kSides) record.at(side).model = duel->model(side);
  if (const Status stored = repository_.Insert(record); !stored.ok()) {
    duel->End("failed", clock_.Now());
    Remove(id);
    if (stored.error().code == ErrorCode::kConflict)
      return Refuse(Refusal::Kind::kConflict, "there is a duel of this id");
    return RefuseByStore(stored.error());
  }
  AskBoth(duel, challenge.prompt);
  Wake();
  return id;
}

void Arena::AskBoth(const std::shared_ptr<ActiveDuel>& active, const std::string& prompt) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.created;
    running_answers_ += 2;
  }
  for (const Side side : kSides) {
    Question question = options_.question;
    question.model = active->model(side);
    question.prompt = prompt;
    active->SetAnswer(
        side, host_.Ask(std::move(question), std::make_shared<Listener>(*this, active, side)));
  }
  // The first answer may have failed, or the server been stopped, before the second was known here.
  if (!active->is_wanted())
    for (const ModelHost::AnswerId answer : active->RunningAnswers()) host_.Abort(answer);
}

void Arena::OnAnswerEnd(const std::shared_ptr<ActiveDuel>& active, Side side,
                        Result<Contestant> outcome) {
  const bool failed = !outcome.ok();
  const std::string reason = failed ? outcome.error().message : std::string();
  const bool last = active->EndAnswer(side, std::move(outcome));
  if (failed) {
    StoreFailure(*active, fmt::format("{}: {}", active->model(side), reason));
    // One answer alone is no duel.
    for (const ModelHost::AnswerId answer : active->RunningAnswers()) host_.Abort(answer);
  } else if (last) {
    StoreAnswers(*active);
  }
  Wake();
  const std::lock_guard lock(mutex_);
  --running_answers_;
  answer_ended_.notify_all();
}

void Arena::StoreAnswers(ActiveDuel& active) {
  auto answers = active.Answers();
  if (!answers.ok()) return;  // The failure is stored already.
  const WallTime now = clock_.WallNow();
  std::string_view stage;
  const Status stored = repository_.Update(active.id(), [&](Duel& duel) {
    stage = NameOfStage(duel.stage);  // It has expired meanwhile, perhaps.
    if (!std::holds_alternative<Answering>(duel.stage)) return Ok();
    duel.sides = answers.value();
    if (!options_.store_text)
      for (Contestant& side : duel.sides) side.text.clear();
    BeginVoting(duel, now);
    stage = NameOfStage(duel.stage);
    return Ok();
  });
  if (!stored.ok()) {
    StoreFailure(active, "the answers could not be stored: " + stored.error().message);
    return;
  }
  active.End(stage, clock_.Now());
}

void Arena::StoreFailure(ActiveDuel& active, std::string reason) {
  if (!active.ClaimFailure()) return;
  if (const std::string ended = active.reason_to_end(); !ended.empty()) reason = ended;
  const bool abandoned = reason == kNobodyFollowed;
  reason = Printable(reason);  // Upstreams may say anything, and databases hold no zero bytes.
  if (!abandoned && reason != kServerEnded)
    log::Warning("duel {} has failed: {}", active.id(), reason);
  {
    const std::lock_guard lock(mutex_);
    ++(abandoned ? counts_.abandoned : counts_.failed);
  }
  const WallTime now = clock_.WallNow();
  const Status stored = repository_.Update(active.id(), [&](Duel& duel) {
    Fail(duel, reason, now);
    return Ok();
  });
  if (!stored.ok()) log::Warning("duel {}: {}", active.id(), stored.error().message);
  active.End("failed", clock_.Now());
}

Outcome<Duel> Arena::Find(const std::string& id) {
  auto duel = repository_.Find(id);
  if (duel.ok()) return std::move(duel).value();
  return RefuseByStore(duel.error());
}

Outcome<std::shared_ptr<Follower>> Arena::Follow(const std::string& id, Follower::Position from,
                                                 std::function<void()> notify) {
  if (const auto active = FindActive(id)) {
    const auto follower = std::make_shared<FollowerOfDuel>(active, from, std::move(notify), clock_);
    active->Add(follower);
    follower->Notify();  // Text that was shown before.
    return follower;
  }
  auto found = Find(id);
  if (auto* refusal = std::get_if<Refusal>(&found)) return std::move(*refusal);
  const Duel& duel = std::get<0>(found);
  if (std::holds_alternative<Answering>(duel.stage))
    return Refuse(Refusal::Kind::kGone,
                  "the answers of this duel are lost, since the server has been restarted: start "
                  "another one");
  notify();
  return std::make_shared<FollowerOfPast>(std::string(NameOfStage(duel.stage)));
}

Outcome<Duel> Arena::Cast(const std::string& id, Ballot ballot, Choice choice) {
  if (!Suits(ballot, choice))
    return Refuse(Refusal::Kind::kInvalid, "choice: does not suit this vote");
  std::optional<VoteRefusal> refusal;
  Duel after;
  const WallTime now = clock_.WallNow();
  const Status stored = repository_.Update(id, [&](Duel& duel) {
    refusal = CastVote(duel, ballot, choice, now);
    after = duel;
    return Ok();
  });
  if (!stored.ok()) return RefuseByStore(stored.error());
  const std::lock_guard lock(mutex_);
  if (refusal) {
    ++counts_.refused_votes;
    return ToRefusal(*std::move(refusal));
  }
  ++counts_.votes[ballot];
  return after;
}

Outcome<std::vector<Duel>> Arena::List(const DuelQuery& query) {
  auto duels = repository_.ListRevealed(query);
  if (duels.ok()) return std::move(duels).value();
  return RefuseByStore(duels.error());
}

Outcome<std::vector<Standing>> Arena::Leaderboard() {
  const TimePoint begin = clock_.Now();
  {
    std::unique_lock lock(mutex_);
    // One call computes the board. Others get the one before it, or wait for the first one.
    if (!board_due_) board_made_.wait(lock, [this] { return !makes_board_; });
    if (makes_board_ || (board_due_ && begin < *board_due_)) return board_;
    makes_board_ = true;
  }
  Result<std::vector<Standing>> board = MakeBoard();
  const TimePoint end = clock_.Now();
  const std::lock_guard lock(mutex_);
  makes_board_ = false;
  board_made_.notify_all();
  if (!board.ok()) return RefuseByStore(board.error());
  board_ = std::move(board).value();
  board_due_ = end + std::max(kLeastBoardPeriod, kBoardShare * (end - begin));
  return board_;
}

Result<std::vector<Standing>> Arena::MakeBoard() {
  try {
    ZEUS_TRY(const std::vector<Game> games, repository_.Games());
    return MakeLeaderboard(games, Random(kBoardSeed));
  } catch (const std::bad_alloc&) {
    // Without this error all later calls would wait for this one.
    return Error{ErrorCode::kUnavailable, "the leaderboard does not fit into memory"};
  }
}

TimePoint Arena::Step() {
  const TimePoint now = clock_.Now();
  std::vector<std::shared_ptr<ActiveDuel>> active;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(active_, [&](const auto& entry) { return entry.second->MayBeForgotten(now); });
    for (const auto& [id, duel] : active_) active.push_back(duel);
  }
  bool rests = true;
  for (const auto& duel : active) {
    for (const auto& follower : duel->Step(now)) follower->Notify();
    rests = rests && duel->is_at_rest();
    if (!duel->MustEnd(options_, now)) continue;
    // The answers' ends store the failure.
    for (const ModelHost::AnswerId answer : duel->RunningAnswers()) host_.Abort(answer);
  }
  if (active.empty()) return Ticker::kWhenWoken;
  return now + (rests ? kRestPeriod : kStepPeriod);
}

void Arena::Sweep() {
  const WallTime now = clock_.WallNow();
  const auto before = now - std::chrono::duration_cast<WallTime::duration>(kVotingTime);
  const auto overdue = repository_.Overdue(before, kSweepSize);
  if (!overdue.ok()) {
    log::Warning("looking for old duels failed: {}", overdue.error().message);
    return;
  }
  for (const std::string& id : overdue.value()) {
    const Status ended = repository_.Update(id, [&](Duel& duel) {
      ExpireIfOverdue(duel, now);
      return Ok();
    });
    if (!ended.ok()) log::Warning("ending duel {} failed: {}", id, ended.error().message);
  }
}

ArenaCounts Arena::counts() const {
  const std::lock_guard lock(mutex_);
  ArenaCounts counts = counts_;
  for (const auto& [id, duel] : active_)
    if (duel->is_answering()) ++counts.answering;
  return counts;
}

}  // namespace zeus::colosseum
