#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/units.h"
#include "zeus/monitor/inference/attribution.h"
#include "zeus/wire/llm/energy_note.h"
#include "zeus/wire/llm/response_facts.h"

namespace zeus::gateway {

// Everything that is kept of a metered request: no prompt, no answer, no key.
struct RequestRecord {
  std::string id{};             // "r-01J...", for clients.
  InferenceRequestId number{};  // For the attribution; counts up.
  std::string client_id{};      // The client's own x-request-id, if it sent one.
  std::string key{};            // The label by which requests are charged; see KeyLabel().
  std::size_t upstream_index = 0;
  std::string upstream{};
  std::string model{};
  std::string dialect{};
  bool streamed = false;
  int status = 0;         // HTTP; 0: the client got none.
  std::string outcome{};  // "completed", "failed", "cancelled"; empty while in flight.
  std::string reason{};   // Why it was not completed.

  WallTime arrived_wall{};
  TimePoint arrived{};
  std::optional<TimePoint> first_byte{};
  std::optional<TimePoint> first_token{};
  std::optional<TimePoint> last_token{};
  std::optional<TimePoint> ended{};

  std::optional<double> prompt_tokens{};
  std::optional<double> cached_tokens{};
  std::optional<double> output_tokens{};
  bool tokens_estimated = false;
  double tokens_seen = 0;
  llm::ServerTimes server_times{};  // As the server told them.
  std::string unread_reason{};      // Why no tokens could be seen in the response.

  std::optional<RequestEnergy> energy{};
  std::string absent_reason{};  // Why there is no energy.
  std::optional<double> carbon_grams{};
  std::optional<Joules> idle{};  // With --spread-idle: its part of the energy between requests.
  std::string source{};
  std::vector<std::string> gpus{};
  bool settled = false;  // Its energy is final, or will never be known.
  bool closed = false;   // Nothing will change any more.

  // With --store-text only.
  std::string request_body{};
  std::string response_body{};

  Seconds Duration(TimePoint now) const { return ended.value_or(now) - arrived; }
};

// The energy as clients get it.
llm::EnergyNote MakeNote(const RequestRecord& record, TimePoint now);
// The record for GET /zeus/requests/{id} and the request log.
Json ToJson(const RequestRecord& record, TimePoint now);

// Makes identifiers that sort by time and that nobody guesses: "r-" and 26 letters and digits, 48
// bits of milliseconds and 80 bits of the operating system's randomness.
std::string MakeRequestId(WallTime now);

// The label of an API key for charge-back: "key-" and 12 hexadecimal digits of a hash. Empty for an
// empty key. The key cannot be found from it.
std::string KeyLabel(std::string_view authorization);

// Records of requests: those in flight or waiting for the sensors, and the latest that are closed.
// Memory is bounded by the requests in flight and `most` closed ones. One owner.
class RecordStore {
 public:
  explicit RecordStore(std::size_t most) : most_(most) {}

  // Gives the record its number. The reference is valid until Close().
  RequestRecord& Add(RequestRecord record);
  // nullptr when it was never there or has been forgotten.
  const RequestRecord* Find(const std::string& id) const;
  // A record that is not closed, or nullptr.
  RequestRecord* FindOpen(InferenceRequestId number);
  // Nothing will change in this record any more.
  void Close(InferenceRequestId number);

  // Closed records in the order in which they were closed, after the one of this identifier (all
  // when it is empty or unknown), of this model (every one when it is empty), `limit` at most.
  std::vector<const RequestRecord*> List(const std::string& after, std::string_view model,
                                         std::size_t limit) const;
  std::vector<InferenceRequestId> OpenNumbers() const;
  std::size_t size() const { return open_.size() + closed_.size(); }

 private:
  const std::size_t most_;
  std::unordered_map<InferenceRequestId, RequestRecord> open_{};
  std::unordered_map<std::string, InferenceRequestId> open_ids_{};
  std::deque<RequestRecord> closed_{};
  std::unordered_map<std::string, std::uint64_t> closed_ids_{};  // Places, from the first ever on.
  std::uint64_t forgotten_ = 0;  // Closed records that are not in closed_ any more.
  InferenceRequestId next_ = 1;
};

}  // namespace zeus::gateway
