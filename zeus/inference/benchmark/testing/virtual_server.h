#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/inference/benchmark/load_generator.h"

namespace zeus::inference {

// A server of a language model on virtual time: each answer begins after `first_token` and has a
// token every `token`; it may fail in several ways. Time moves only in WaitUntil(). One owner.
class VirtualServer final : public Transport {
 public:
  struct Options {
    Seconds first_token{0.5};
    Seconds token{0.1};
    unsigned tokens_per_event = 1;
    bool usage = true;
    bool energy = false;        // Answers carry the comment of a gateway: 2 J, and 1 J per token.
    std::size_t refuse = 0;     // So many requests are answered with status 503.
    std::size_t stall = 0;      // So many requests get no byte at all.
    std::size_t break_off = 0;  // So many answers end after their first token.
  };

  VirtualServer(VirtualClock& clock, const Options& options) : clock_(clock), options_(options) {}

  void Start(CallId id, const Outgoing& request, Listener& listener) override {
    listener_ = &listener;
    last_request_ = request;
    most_at_once_ = std::max(most_at_once_, ++running_);
    const Json body = ParseJson(request.body).value();
    Answer answer{.tokens = body.value("max_tokens", 1U), .prompt_tokens = body.dump().size() / 4};
    const std::size_t number = started_++;
    if (number < options_.refuse)
      answer.kind = Kind::kRefused;
    else if (number < options_.refuse + options_.stall)
      answer.kind = Kind::kStalled;
    else if (number < options_.refuse + options_.stall + options_.break_off)
      answer.kind = Kind::kBroken;
    if (answer.kind != Kind::kStalled) due_.emplace(clock_.Now() + options_.first_token, id);
    answers_.emplace(id, answer);
  }

  void Abort(CallId id) override {
    if (answers_.erase(id) > 0) --running_;
    ++aborted_;
  }

  void WaitUntil(TimePoint deadline) override {
    while (!due_.empty() && !answers_.contains(due_.begin()->second)) due_.erase(due_.begin());
    if (due_.empty() || due_.begin()->first > deadline) {
      clock_.SleepUntil(deadline);
      return;
    }
    const auto [time, id] = *due_.begin();
    due_.erase(due_.begin());
    clock_.SleepUntil(time);
    Serve(id);
  }

  std::size_t most_at_once() const { return most_at_once_; }
  std::size_t aborted() const { return aborted_; }
  const Outgoing& last_request() const { return last_request_; }

 private:
  enum class Kind { kSound, kRefused, kStalled, kBroken };
  struct Answer {
    unsigned tokens;
    std::size_t prompt_tokens;
    unsigned sent = 0;
    Kind kind = Kind::kSound;
  };

  void Serve(CallId id) {
    Answer& answer = answers_.at(id);
    if (answer.kind == Kind::kRefused) {
      listener_->OnHead(id, {.status = 503, .content_type = "application/json"});
      listener_->OnBody(id, R"({"error": {"message": "overloaded"}})");
      End(id);
      return;
    }
    if (answer.sent == 0) {
      listener_->OnHead(id, {.status = 200,
                             .content_type = "text/event-stream",
                             .request_id = "r-" + std::to_string(id)});
      listener_->OnBody(
          id, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n");
    }
    listener_->OnBody(id, "data: {\"choices\":[{\"delta\":{\"content\":\"word \"}}]}\n\n");
    answer.sent += options_.tokens_per_event;
    if (answer.kind == Kind::kBroken) {
      answers_.erase(id);
      --running_;
      listener_->OnFailure(id, {FailureKind::kBroken, 0, "the server closed the connection"});
    } else if (answer.sent >= answer.tokens) {
      Conclude(id, answer);
    } else {
      due_.emplace(clock_.Now() + options_.token * options_.tokens_per_event, id);
    }
  }

  void Conclude(CallId id, const Answer& answer) {
    if (options_.usage)
      listener_->OnBody(
          id,
          Json({{"choices", Json::array()},
                {"usage",
                 {{"prompt_tokens", answer.prompt_tokens}, {"completion_tokens", answer.tokens}}}})
                  .dump()
                  .insert(0, "data: ") +
              "\n\n");
    if (options_.energy)
      listener_->OnBody(id, ": energy " +
                                Json({{"energy_joules", 2.0 + answer.tokens},
                                      {"sigma_joules", 0.3},
                                      {"prefill_joules", 2.0},
                                      {"decode_joules", 1.0 * answer.tokens},
                                      {"final", false}})
                                    .dump() +
                                "\n\n");
    listener_->OnBody(id, "data: [DONE]\n\n");
    End(id);
  }

  void End(CallId id) {
    answers_.erase(id);
    --running_;
    listener_->OnEnd(id);
  }

  VirtualClock& clock_;
  const Options options_;
  Listener* listener_ = nullptr;
  Outgoing last_request_{};
  std::multimap<TimePoint, CallId> due_{};
  std::map<CallId, Answer> answers_{};
  std::size_t started_ = 0;
  std::size_t running_ = 0;
  std::size_t most_at_once_ = 0;
  std::size_t aborted_ = 0;
};

}  // namespace zeus::inference
