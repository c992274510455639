// A bucket behind HTTP: S3 as AWS and Ceph speak it, and Google's XML API.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/bucket/bucket.h"
#include "storage/bucket/bucket_address.h"
#include "storage/bucket/bucket_errors.h"
#include "storage/bucket/bucket_options.h"
#include "storage/bucket/credentials.h"
#include "storage/bucket/http_pool.h"

namespace tacho::storage {

// Thread-safe. The rules of repeating are those of bucket_errors.h.
//
// Tags: at S3 the ETag without its quotes. At Google "GENERATION ETAG": writes want the one, reads
// the other.
class HttpBucket : public Bucket {
 public:
  // Larger objects are not read; nothing of ours is as large.
  static constexpr size_t kMaxObjectBytes = size_t{512} << 20;
  // Up to this size a request that stands still is sent again after slow_after. A larger one may
  // take a service longer than that, and is dear to send twice.
  static constexpr size_t kQuickBytes = size_t{1} << 20;

  // `fetch` may use `http`.
  HttpBucket(BucketOptions options, BucketAddress address, std::unique_ptr<HttpPool> http,
             FetchCredentials fetch);

  absl::StatusOr<StoredObject> Get(absl::string_view key) override;
  absl::StatusOr<std::optional<StoredObject>> GetIfChanged(absl::string_view key,
                                                           absl::string_view tag) override;
  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset,
                                       uint64_t bytes) override;
  absl::StatusOr<std::string> PutNew(absl::string_view key, absl::string_view body) override;
  absl::StatusOr<std::string> PutIf(absl::string_view key, absl::string_view tag,
                                    absl::string_view body) override;
  absl::StatusOr<std::string> Put(absl::string_view key, absl::string_view body) override;
  absl::StatusOr<ObjectPage> List(absl::string_view prefix, absl::string_view from) override;
  absl::Status Delete(absl::string_view key) override;

  // Sends a body with the hash of another one, as damage on the way would. Not repeated.
  //   OK                it is stored
  //   INVALID_ARGUMENT  it is refused, for whatever reason
  absl::Status PutDamaged(absl::string_view key);

 private:
  struct Request {
    BucketCall call;
    std::string method;
    std::string url;
    std::string name;                       // For errors.
    std::vector<std::string> headers = {};  // Beside those of signing.
    absl::string_view body = {};
    size_t max_answer_bytes = size_t{8} << 20;
    bool quick = true;
  };

  bool IsGoogle() const { return address_.dialect == BucketDialect::kGcs; }
  Request ObjectRequest(BucketCall call, const char* method, absl::string_view key) const;
  // Sends it until it succeeds, or repeating is of no use. 304 of kGetIfChanged and 416 of
  // kGetRange are successes.
  absl::StatusOr<HttpReply> Perform(const Request& request);
  HttpCall Sign(const Request& request, const Credentials& credentials) const;
  void Report(const Request& request, const HttpReply& reply, absl::Duration took, Again again);
  absl::StatusOr<std::string> Write(BucketCall call, absl::string_view key, std::string condition,
                                    absl::string_view body);
  absl::StatusOr<StoredObject> ObjectOf(HttpReply reply, const std::string& name) const;
  std::string Tag(const HttpReply& reply) const;

  const BucketOptions options_;
  const BucketAddress address_;
  const std::unique_ptr<HttpPool> http_;
  CredentialKeeper keeper_;
};

}  // namespace tacho::storage
