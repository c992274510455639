// What one member answers about its part of a split job, message by message.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace tacho::server::cluster {

// One thread at a time.
template <typename Response>
class PartSource {
 public:
  virtual ~PartSource() = default;
  // False: that was all. A member that has nothing of the job has nothing to say, which is no error
  // here: see EndOfParts().
  virtual absl::StatusOr<bool> Next(Response* response) = 0;
  // NOT_FOUND once Next() has returned false because the member does not know the job.
  virtual absl::Status not_found() const = 0;
};

// By the number of the part. All calls have begun, so members work side by side.
template <typename Response>
using PartSources = std::vector<std::unique_ptr<PartSource<Response>>>;

// NOT_FOUND if no member knows the job.
template <typename Response>
absl::Status EndOfParts(const PartSources<Response>& parts) {
  absl::Status status;
  for (const auto& part : parts) {
    status = part->not_found();
    if (status.ok()) return status;
  }
  return status;
}

}  // namespace tacho::server::cluster
