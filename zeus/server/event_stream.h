#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/identifier.h"
#include "zeus/server/http_message.h"
#include "zeus/server/scoped_services.h"

namespace zeus::server {

// The events of a job as server-sent events, from a sequence number on; from the first when the job
// never had that number, or was deleted and made anew. The service must outlive it.
class JobEventStream final : public EventSource {
 public:
  JobEventStream(const ScopedJobService& service, std::string job_id, std::int64_t seen)
      : service_(service),
        job_id_(std::move(job_id)),
        inner_id_(ScopedId(service.name_space(), job_id_)),
        seen_(seen) {}

  const std::string& job_id() const override { return inner_id_; }
  Result<std::string> Next() override;

 private:
  ScopedJobService service_;
  const std::string job_id_;
  const std::string inner_id_;  // With its name space.
  std::int64_t seen_;
  std::optional<WallTime> created_at_{};  // Of the job that was seen.
};

}  // namespace zeus::server
