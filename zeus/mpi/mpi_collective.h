#pragma once

#include <memory>
#include <span>

#include "zeus/base/result.h"
#include "zeus/optimizer/collective.h"

namespace zeus {

// The ranks of an MPI program, on a communicator of their own: nothing here meets the messages of
// the program. An error of MPI becomes a Status; no call of this class ends the program. All ranks
// get the same bits. One owner; no other thread calls MPI meanwhile, unless the program initialised
// it for several.
class MpiCollective final : public Collective {
 public:
  // All ranks of the program make this call together, and end together what it returns. MPI is
  // initialised if the program has not, and finalised again then.
  static Result<std::unique_ptr<MpiCollective>> World();
  // The ranks of a communicator, given as MPI_Comm_c2f(communicator).
  static Result<std::unique_ptr<MpiCollective>> Of(int communicator);

  ~MpiCollective() override;
  MpiCollective(const MpiCollective&) = delete;
  MpiCollective& operator=(const MpiCollective&) = delete;

  int rank() const override;
  int size() const override;
  Status Sum(std::span<double> values) override;
  Status Max(std::span<double> values) override;
  Status Broadcast(std::span<double> values, int root) override;

 private:
  class Communicator;
  explicit MpiCollective(std::unique_ptr<Communicator> communicator);

  std::unique_ptr<Communicator> communicator_;
};

}  // namespace zeus
