#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/colosseum/model_host.h"

namespace zeus::colosseum::testing {

// Models whose answers arrive when a test says so. One thread.
class ScriptedHost final : public ModelHost {
 public:
  struct Asked {
    Question question{};
    std::shared_ptr<AnswerListener> listener{};
    bool aborted = false;
    bool ended = false;
  };

  Result<std::vector<std::string>> Models() override {
    if (!reachable) return Error{ErrorCode::kUnavailable, "no answer from http://secret:8000"};
    return models;
  }
  AnswerId Ask(Question question, std::shared_ptr<AnswerListener> listener) override {
    asked.push_back({std::move(question), std::move(listener)});
    const AnswerId answer = asked.size() - 1;
    if (std::exchange(fails_at_once, false)) End(answer, Error{ErrorCode::kUnavailable, "refused"});
    return answer;
  }
  // Ends the answer at once, as a host's thread would a moment later.
  void Abort(AnswerId answer) override {
    asked[answer].aborted = true;
    End(answer, Error{ErrorCode::kUnavailable, "aborted"});
  }
  void End(AnswerId answer, Result<Contestant> outcome) {
    if (std::exchange(asked[answer].ended, true)) return;
    asked[answer].listener->OnEnd(std::move(outcome));
  }
  // The whole answer, which took so many joules.
  void Complete(AnswerId answer, std::string_view text, double joules) {
    asked[answer].listener->OnText(text);
    asked[answer].listener->OnTextEnd();
    End(answer,
        Contestant{
            .request = "r-SECRET",
            .prompt_tokens = 4321,
            .output_tokens = 1234,
            .energy = AnswerEnergy{.energy = Joules(joules), .sigma = Joules(0.1), .final = true},
            .duration = Seconds(98.5),
            .power = {{.at = Seconds(1), .power = Watts(543.21)}}});
  }
  // Ends whatever still runs.
  void EndAll() {
    for (std::size_t i = 0; i < asked.size(); ++i)
      End(i, Error{ErrorCode::kUnavailable, "the test ends"});
  }

  std::vector<std::string> models = {"left-8b", "right-70b"};
  bool reachable = true;
  bool fails_at_once = false;  // The next answer, before its id is known.
  std::vector<Asked> asked{};
};

}  // namespace zeus::colosseum::testing
