#pragma once

#include <functional>
#include <memory>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/http/client.h"
#include "zeus/http/message.h"
#include "zeus/http/router.h"
#include "zeus/inference/server/served_engine.h"

namespace zeus::inference {

// Answers OpenAI's and Ollama's routes, /metrics, /healthz and, where allowed, the truth, from an
// engine that must outlive it. Thread-safe.
class InferenceApi final : public http::RequestHandler {
 public:
  enum class Truth { kHidden, kShown };

  struct Options {
    std::string model_name{};
    Truth truth = Truth::kHidden;
    // A server whose words become the text of answers: the energy is simulated, the words are real.
    std::string text_from{};
  };

  // kInvalidArgument when text_from is no URL.
  static Result<std::unique_ptr<InferenceApi>> Create(const Options& options, ServedEngine& engine,
                                                      const Clock& clock);

  http::Work Classify(const http::Request& request) const override;
  http::Admission Admit(const http::Request& header) override;
  http::Answer Handle(http::Request& request) override;
  http::Answer Refusal(int status, const std::string& why) override;
  void Finished(const http::FinishedRequest& request) override;

 private:
  InferenceApi(const Options& options, ServedEngine& engine, const Clock& clock);
  void AddRoutes();
  Result<http::Answer> Complete(Endpoint endpoint, const http::Request& request);
  Result<std::string> AskForText(Endpoint endpoint, const http::Request& request);
  Result<http::Answer> ListModels() const;
  Result<http::Answer> ShowTruth(const std::string& name);
  Result<http::Answer> ShowAccounts();

  const Options options_;
  ServedEngine& engine_;
  const long long created_;  // Seconds since 1970.
  http::Router router_;
};

}  // namespace zeus::inference
