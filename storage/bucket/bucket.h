// A bucket of an object store: whole objects under keys, written once or replaced under a
// condition. It is what collectors share. `HttpBucket` speaks to S3, Google Cloud Storage and Ceph;
// tests have one in memory with the same rules.
//
// Keys have the characters A–Z a–z 0–9 - . _ / only: others break the signing of requests in some
// clients. What a service calls ETag or generation is a tag here: opaque, compared with nothing,
// only handed back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::storage {

struct StoredObject {
  std::string body;
  std::string tag;  // The version that `body` is, for PutIf().
};

struct ListedObject {
  std::string key;
  uint64_t bytes = 0;
};

struct ObjectPage {
  std::vector<ListedObject> objects;  // In byte order of their keys.
  // Pass it to the next List(). Absent: this was the last page.
  std::optional<std::string> next;
};

// Thread-safe. Every call blocks until the service has answered or the call was given up. It is
// repeated inside only where that cannot change the outcome.
//
// Errors of every call, besides its own:
//   UNAVAILABLE         no answer, or one that says to try later. A write may have happened, or may
//                       still happen: read before you believe either.
//   PERMISSION_DENIED   the credentials do not permit this, or none were found. The message says
//                       which source they came from.
//   INVALID_ARGUMENT    the service refuses the request for good: the bucket does not exist, the
//                       clock of this machine is too far off, the key is malformed.
class Bucket {
 public:
  virtual ~Bucket() = default;

  //   NOT_FOUND  there is no such object.
  virtual absl::StatusOr<StoredObject> Get(absl::string_view key) = 0;

  // As Get(), unless the object still has the version `tag`: then there is no value.
  virtual absl::StatusOr<std::optional<StoredObject>> GetIfChanged(absl::string_view key,
                                                                   absl::string_view tag) = 0;

  // At most `bytes` bytes from `offset` on: fewer where the object ends before, none behind its
  // end.
  //   NOT_FOUND  there is no such object.
  virtual absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset,
                                               uint64_t bytes) = 0;

  // Creates the object; returns its tag. Of several that create one key, exactly one succeeds.
  //   ALREADY_EXISTS  an object is there. It may be what an earlier try of the same write left,
  //                   whose answer was lost: Get() and compare before you conclude that somebody
  //                   else wrote it.
  virtual absl::StatusOr<std::string> PutNew(absl::string_view key, absl::string_view body) = 0;

  // Replaces the object while it is the version `tag`; returns the new tag. Of several that replace
  // one version, exactly one succeeds.
  //   FAILED_PRECONDITION  it is another version, or is not there. The same caution as for
  //   ALREADY_EXISTS.
  virtual absl::StatusOr<std::string> PutIf(absl::string_view key, absl::string_view tag,
                                            absl::string_view body) = 0;

  // Creates or replaces the object; returns its tag. For keys that only one writer can ever choose.
  virtual absl::StatusOr<std::string> Put(absl::string_view key, absl::string_view body) = 0;

  // A page of the objects whose keys begin with `prefix`. `from` is empty, or `next` of the page
  // before. Keys with other characters, which somebody else has put there, are left out. Some
  // services list late: nothing that must be right may rest on a listing.
  virtual absl::StatusOr<ObjectPage> List(absl::string_view prefix, absl::string_view from) = 0;

  // Succeeds also where there is no such object.
  virtual absl::Status Delete(absl::string_view key) = 0;
};

}  // namespace tacho::storage
