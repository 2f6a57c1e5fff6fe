#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/wire/llm/response_filter.h"

// Responses of every server in every dialect, written after their documentation, and what must be
// seen in them.
namespace zeus::llm::testing {

struct SampleResponse {
  std::string name;
  std::string target;
  std::string request;       // The request's body.
  std::string content_type;  // The response's.
  // The response's body. "@M@" marks where the client finds a further member with the energy, "@C@"
  // where a comment with it.
  std::string marked;
  // Facts that the response tells.
  double seen_tokens = 0;
  std::optional<double> prompt_tokens{};
  std::optional<double> cached_tokens{};
  std::optional<double> output_tokens{};
  std::optional<Seconds> queue{};
  std::optional<Seconds> prefill{};
  std::optional<Seconds> decode{};
  std::vector<std::string> finish_reasons{};
  std::size_t energy_asked = 1;  // How often the listener is asked for the energy.

  // The body as the server sent it.
  std::string Body() const;
  // The body as the client gets it.
  std::string Annotated() const;
  RequestFacts Request() const;
};

std::vector<SampleResponse> SampleResponses();

// The energy in annotated samples.
EnergyNote SampleNote();

// A listener that counts.
class RecordingListener final : public ResponseFilter::Listener {
 public:
  explicit RecordingListener(std::optional<EnergyNote> note = SampleNote())
      : note_(std::move(note)) {}

  void OnTokens(double tokens) override { tokens_.push_back(tokens); }
  std::optional<EnergyNote> OnEnergyWanted(const ResponseFacts& facts) override {
    asked_with_.push_back(facts);
    return note_;
  }

  const std::vector<double>& tokens() const { return tokens_; }
  const std::vector<ResponseFacts>& asked_with() const { return asked_with_; }

 private:
  std::optional<EnergyNote> note_;
  std::vector<double> tokens_{};
  std::vector<ResponseFacts> asked_with_{};
};

// Replaces every occurrence.
std::string Replaced(std::string text, std::string_view what, std::string_view by);

// Changes a body in one of the ways in which servers differ or fail: other line ends, comments,
// damage, cuts.
std::string Varied(std::string body, Random& random);

}  // namespace zeus::llm::testing
