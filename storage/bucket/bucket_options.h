// Where a bucket is, how to get in, and how long to wait: what a configuration says of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/bucket/bucket.h"

namespace tacho::storage {

// One request that has ended. A call of Bucket sends more than one if it repeats it.
struct FinishedRequest {
  // get, get_if_changed, get_range, put_new, put_if, put, list or delete.
  const char* operation = "";
  int code = 0;  // The status of HTTP; 0 if there was no whole answer.
  absl::Duration took;
  uint64_t bytes_sent = 0;  // Of bodies.
  uint64_t bytes_received = 0;
  // Why it is sent again: slow (no byte for too long), failed (no connection, or it broke), busy
  // (the service asks to come later), expired (the credentials) or error (a 5xx). Empty: it is not.
  const char* retry = "";
};

struct BucketOptions {
  // s3://BUCKET or s3://BUCKET/PREFIX, and gs:// for Google Cloud Storage. Keys begin behind the
  // prefix.
  std::string url;
  // http://HOST:PORT or https://HOST:PORT. Empty: the one of the region at AWS, or Google's.
  std::string endpoint;
  // Empty: AWS_REGION, else AWS_DEFAULT_REGION, else us-east-1. Google has none.
  std::string region;
  // The bucket's name stands in the path and not in the host's name. Most Cephs want that. A name
  // with a dot is always put there, because no certificate would match it elsewhere.
  bool path_style = false;
  // auto, environment, file:PATH, web_identity, container or instance: credentials.h says what each
  // is.
  std::string credentials = "auto";
  std::string ca_file;  // Authorities for https, PEM. Empty: the system's.
  // A call is not repeated any more after this time, and ends if no byte has moved for as long.
  absl::Duration timeout = absl::Seconds(10);
  // A request of which no byte moves for this time is sent again on a new connection; the second
  // one after twice this.
  absl::Duration slow_after = absl::Seconds(2);
  // Sends tags in quotes. The probe says where that is wanted; Ceph 16 wants them without.
  bool quote_tags = false;
  // Called at the end of each request, by the thread that made the call.
  std::function<void(const FinishedRequest&)> on_request;
  // As getenv(), which it is if empty.
  std::function<const char*(const char* name)> environment;
};

// Connects to nothing yet, and starts no thread. Credentials are looked for at the first call.
//   INVALID_ARGUMENT  the sentence says which option is wrong, and what it should be.
absl::StatusOr<std::unique_ptr<Bucket>> OpenBucket(BucketOptions options);

}  // namespace tacho::storage
