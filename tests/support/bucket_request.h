// Calls of a bucket as values, for buckets of tests that decide what becomes of each: answer it,
// lose the answer, do it later or twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"

namespace tacho::storage {

struct BucketRequest {
  enum class Kind { kGet, kGetIfChanged, kGetRange, kPutNew, kPutIf, kPut, kList, kDelete };
  Kind kind = Kind::kGet;
  std::string key;   // The prefix, in kList.
  std::string tag;   // In kGetIfChanged and kPutIf; `from` in kList.
  std::string body;  // In kPut…
  uint64_t offset = 0;
  uint64_t bytes = 0;

  bool writes() const {
    return kind == Kind::kPutNew || kind == Kind::kPutIf || kind == Kind::kPut ||
           kind == Kind::kDelete;
  }
};

struct BucketAnswer {
  absl::Status status;
  std::string body;
  std::string tag;
  bool unchanged = false;  // In kGetIfChanged.
  ObjectPage page;
};

// A bucket that hands each call to one function.
class RequestBucket : public Bucket {
 public:
  absl::StatusOr<StoredObject> Get(absl::string_view key) override {
    BucketAnswer answer = Ask({.kind = BucketRequest::Kind::kGet, .key = std::string(key)});
    if (!answer.status.ok()) return answer.status;
    return StoredObject{std::move(answer.body), std::move(answer.tag)};
  }

  absl::StatusOr<std::optional<StoredObject>> GetIfChanged(absl::string_view key,
                                                           absl::string_view tag) override {
    BucketAnswer answer = Ask({.kind = BucketRequest::Kind::kGetIfChanged,
                               .key = std::string(key),
                               .tag = std::string(tag)});
    if (!answer.status.ok()) return answer.status;
    if (answer.unchanged) return std::nullopt;
    return StoredObject{std::move(answer.body), std::move(answer.tag)};
  }

  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset,
                                       uint64_t bytes) override {
    BucketAnswer answer = Ask({.kind = BucketRequest::Kind::kGetRange,
                               .key = std::string(key),
                               .offset = offset,
                               .bytes = bytes});
    if (!answer.status.ok()) return answer.status;
    return std::move(answer.body);
  }

  absl::StatusOr<std::string> PutNew(absl::string_view key, absl::string_view body) override {
    return Tag(Ask({.kind = BucketRequest::Kind::kPutNew,
                    .key = std::string(key),
                    .body = std::string(body)}));
  }

  absl::StatusOr<std::string> PutIf(absl::string_view key, absl::string_view tag,
                                    absl::string_view body) override {
    return Tag(Ask({.kind = BucketRequest::Kind::kPutIf,
                    .key = std::string(key),
                    .tag = std::string(tag),
                    .body = std::string(body)}));
  }

  absl::StatusOr<std::string> Put(absl::string_view key, absl::string_view body) override {
    return Tag(Ask(
        {.kind = BucketRequest::Kind::kPut, .key = std::string(key), .body = std::string(body)}));
  }

  absl::StatusOr<ObjectPage> List(absl::string_view prefix, absl::string_view from) override {
    BucketAnswer answer = Ask(
        {.kind = BucketRequest::Kind::kList, .key = std::string(prefix), .tag = std::string(from)});
    if (!answer.status.ok()) return answer.status;
    return std::move(answer.page);
  }

  absl::Status Delete(absl::string_view key) override {
    return Ask({.kind = BucketRequest::Kind::kDelete, .key = std::string(key)}).status;
  }

 protected:
  // Returns once the call is over. Called on the thread of the caller.
  virtual BucketAnswer Ask(BucketRequest request) = 0;

 private:
  static absl::StatusOr<std::string> Tag(BucketAnswer answer) {
    if (!answer.status.ok()) return answer.status;
    return std::move(answer.tag);
  }
};

}  // namespace tacho::storage
