#include "zeus/optimizer/agreement.h"

#include <cstddef>
#include <utility>

namespace zeus {

Result<bool> Agreement::AtLeader(bool holds) {
  if (alone()) return holds;
  double value = holds ? 1.0 : 0.0;
  ZEUS_RETURN_IF_ERROR(collective_.Broadcast({&value, 1}, 0));
  return value != 0.0;
}

Result<std::vector<double>> Agreement::FromLeader(std::vector<double> numbers) {
  if (alone()) return numbers;
  auto count = static_cast<double>(numbers.size());
  ZEUS_RETURN_IF_ERROR(collective_.Broadcast({&count, 1}, 0));
  numbers.resize(static_cast<std::size_t>(count));
  ZEUS_RETURN_IF_ERROR(collective_.Broadcast(numbers, 0));
  return numbers;
}

Status Agreement::Together(Status status) {
  if (alone()) return status;
  double failed = status.ok() ? 0.0 : 1.0;
  ZEUS_RETURN_IF_ERROR(collective_.Max({&failed, 1}));
  if (!status.ok() || failed == 0.0) return status;
  return Error{ErrorCode::kUnavailable, "another rank of this job failed: its log tells why"};
}

}  // namespace zeus
