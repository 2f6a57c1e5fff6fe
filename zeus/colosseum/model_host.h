#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/colosseum/duel.h"

namespace zeus::colosseum {

// A prompt for one model, and how it is to be answered.
struct Question {
  std::string model{};
  std::string prompt{};
  int most_tokens = 512;
  double temperature = 1.0;
  double top_p = 0.95;
  int top_k = 50;
};

// Follows one answer. Called by one thread at a time, never by Ask() itself.
class AnswerListener {
 public:
  virtual ~AnswerListener() = default;
  virtual void OnText(std::string_view piece) = 0;
  // The text is complete; its energy may not be known yet.
  virtual void OnTextEnd() = 0;
  // Called once, as the last function: what is known about the answer besides its text and model,
  // or why there is none.
  virtual void OnEnd(Result<Contestant> outcome) = 0;
};

// The models that answer. Thread-safe.
class ModelHost {
 public:
  using AnswerId = std::uint64_t;

  virtual ~ModelHost() = default;
  // The names of the models, each once, in order. May block for seconds.
  virtual Result<std::vector<std::string>> Models() = 0;
  // Begins an answer, and returns at once.
  virtual AnswerId Ask(Question question, std::shared_ptr<AnswerListener> listener) = 0;
  // Ends an answer soon; the listener hears its end. Does nothing for one that has ended.
  virtual void Abort(AnswerId answer) = 0;
};

}  // namespace zeus::colosseum
