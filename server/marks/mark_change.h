// Applies a ChangeMarks request to the attributes of a job.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/store.h"
#include "tacho/v1/marks.pb.h"

namespace tacho::server::marks {

// Stated in proto/tacho/v1/marks.proto: a list of jobs has to stay readable.
inline constexpr size_t kMaxTags = 64;  // Concurrent changes may make a few more.
inline constexpr size_t kMaxTagBytes = 64;
inline constexpr size_t kMaxGroupBytes = 256;
inline constexpr size_t kMaxNoteBytes = 4096;
// To add, and to remove.
inline constexpr size_t kMaxTagsOfRequest = 256;

// Makes the change durable and returns the marks that the job has then. A removed mark leaves every
// attempt that has it; a new one goes to the latest attempt. Blocks for the disk.
//   INVALID_ARGUMENT    the text names the field.
//   NOT_FOUND           there is no such job.
//   RESOURCE_EXHAUSTED  too many tags; or as Store::AppendAttributes().
//   others              as Store::Attempts() and Store::AppendAttributes().
absl::StatusOr<v1::JobMarks> ChangeMarks(storage::Store& store,
                                         const v1::ChangeMarksRequest& request);

}  // namespace tacho::server::marks
