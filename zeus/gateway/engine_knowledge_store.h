#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/clock/engine_model.h"

namespace zeus::gateway {

// The engine about which something was learned.
struct EngineName {
  std::string model{};  // "llama-3.1-8b"
  std::string gpus{};   // "2 x NVIDIA H100 80GB HBM3"
  Hertz highest{};      // Clocks of the knowledge are relative to it.
};

// Keeps what governors have learned of engines for the next start, in a JSON file for each model
// and kind of GPU (docs/formats.md). One owner; processes may share the folder.
class EngineKnowledgeStore {
 public:
  explicit EngineKnowledgeStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // nullopt when nothing is kept of this engine. Logs a warning, and returns nullopt, when the file
  // cannot be used.
  std::optional<EngineKnowledge> Find(const EngineName& engine) const;
  Status Save(const EngineName& engine, const EngineKnowledge& knowledge) const;

  std::filesystem::path File(const EngineName& engine) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace zeus::gateway
