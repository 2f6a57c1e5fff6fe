#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/units.h"
#include "zeus/wire/llm/response_filter.h"

namespace zeus::inference {

// The energy of one request, as a gateway stated it.
struct RequestEnergy {
  Joules energy;
  Joules sigma{};  // One standard deviation; 0 where it is not stated.
  std::optional<Joules> prefill{};
  std::optional<Joules> decode{};
  bool final = false;  // No later reading of the sensors will change it.
};
// Reads the object that `zeus llm gateway` puts into answers and shows at /zeus/requests/ID.
// nullopt when it has no energy.
std::optional<RequestEnergy> ReadRequestEnergy(const Json& json);

// Output tokens that arrived together.
struct TokenArrival {
  TimePoint at;
  double tokens;
};

// Reads one answer while it arrives: when its tokens came, how many the server counted, and the
// energy that a gateway wrote into it. One owner.
class AnswerReader final : private llm::ResponseFilter::Listener {
 public:
  // `target` and `body` are those of the request.
  AnswerReader(std::string_view target, std::string_view body);
  ~AnswerReader() override;
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;

  void OnHead(int status, std::string_view content_type, std::string_view content_encoding);
  void OnBody(TimePoint now, std::string_view bytes);
  void OnEnd(TimePoint now);

  // Tokens of the answer so far. The server's count, once it is known, rescales the arrivals.
  const std::vector<TokenArrival>& arrivals() const { return arrivals_; }
  double output_tokens() const;
  std::optional<double> prompt_tokens() const;
  bool tokens_estimated() const;  // The server did not count them.
  const std::optional<RequestEnergy>& energy() const { return energy_; }
  // The server's message when it reported an error within a stream; empty otherwise.
  std::string error() const;
  // Why tokens cannot be seen in this answer, as a clause; empty when they can.
  std::string blind_reason() const;

 private:
  void OnTokens(double tokens) override;
  std::optional<llm::EnergyNote> OnEnergyWanted(const llm::ResponseFacts& facts) override;
  void ReadLine(std::string_view line);

  const llm::RequestFacts request_;
  std::unique_ptr<llm::ResponseFilter> filter_;
  TimePoint now_{};
  std::vector<TokenArrival> arrivals_{};
  std::optional<RequestEnergy> energy_{};
  std::string line_{};  // The part of a line that has arrived.
  bool skip_line_ = false;
  std::string passed_{};  // Bytes that leave the filter; nobody needs them.
};

}  // namespace zeus::inference
