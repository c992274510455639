// Whether a bucket keeps the promises of bucket.h. Services differ, and some break them silently: a
// Ceph 16 bucket with versions lets all of eight creators win. So the probe does not believe a
// name; it races.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"

namespace tacho::storage {

struct ProbeFinding {
  enum class Result { kPass, kFail, kUnknown };  // Unknown: the service did not answer clearly.

  // One of:
  //   read_after_write   an object is read as it was written and replaced
  //   ranged_read        a part of an object
  //   list_after_write   a listing has what was just written
  //   create_once        an object that is there is not created again
  //   create_race        of connections that create one key together, one succeeds, and its bytes
  //                      are there
  //   replace            the tag that writing returned replaces the object
  //   replace_race       of connections that replace one version together, one succeeds
  //   replace_stale      the tag of an older version is refused
  //   replace_missing    an object that is not there is not replaced
  //   damaged_body       a body that does not match the hash sent with it is refused; only over
  //   HTTP
  std::string name;
  Result result = Result::kUnknown;
  std::string detail;  // A sentence: what was seen.
};
const char* NameOf(ProbeFinding::Result result);  // "pass", "fail", "unknown".

struct ProbeReport {
  std::vector<ProbeFinding> findings;
  // Something speaks against it. If not, and it is not fit either, the service did not answer
  // clearly: probe it again.
  bool failed = false;
  // Several collectors may share the bucket: no finding is fail, and those of create_… and
  // replace_… pass.
  bool fit_to_share = false;
  // One collector may keep its history there: read_after_write, ranged_read and replace pass.
  bool fit_for_history = false;
  bool quote_tags = false;  // Replacing works only with BucketOptions::quote_tags.
  std::string verdict;      // A sentence: which it is fit for, else what is wrong and what to do.

  const ProbeFinding* Find(absl::string_view name) const;  // Null: not looked at.
};

struct ProbeOptions {
  int connections = 8;
  int rounds = 5;  // Of each race.
};

// Sends about 140 requests to keys below probe/RANDOM/, and deletes them afterwards. Takes about a
// second.
//   UNAVAILABLE, PERMISSION_DENIED, INVALID_ARGUMENT   nothing can be written there, or read
absl::StatusOr<ProbeReport> ProbeBucket(Bucket& bucket, const ProbeOptions& options = {});

}  // namespace tacho::storage
