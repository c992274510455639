// A bucket in memory that counts its requests and refuses when a test says so.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "storage/bucket/bucket.h"

namespace tacho::storage {

// Thread-safe.
class CountedBucket final : public Bucket {
 public:
  // Called before each request with its name and key, with no lock held; not OK refuses it.
  using Before = std::function<absl::Status(absl::string_view call, absl::string_view key)>;
  // Not while requests are on their way.
  void SetBefore(Before before) { before_ = std::move(before); }
  // The next so many writes with a condition happen, and their callers do not hear of it.
  void LoseAnswers(int writes) { answers_to_lose_ = writes; }

  int gets() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return gets_;
  }
  uint64_t bytes_got() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return bytes_got_;
  }
  std::map<std::string, std::string> Objects() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    std::map<std::string, std::string> objects;
    for (const auto& [key, object] : objects_) objects[key] = object.body;
    return objects;
  }
  void Change(const std::string& key, std::string body) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    Write(key, body);
  }

  absl::StatusOr<StoredObject> Get(absl::string_view key) override {
    if (absl::Status refused = Refuse("get", key); !refused.ok()) return refused;
    absl::MutexLock lock(&mutex_);
    ++gets_;
    const auto found = objects_.find(std::string(key));
    if (found == objects_.end()) return absl::NotFoundError(key);
    bytes_got_ += found->second.body.size();
    return found->second;
  }
  absl::StatusOr<std::optional<StoredObject>> GetIfChanged(absl::string_view key,
                                                           absl::string_view tag) override {
    auto object = Get(key);
    if (!object.ok()) return object.status();
    if (object->tag == tag) return std::nullopt;
    return *std::move(object);
  }
  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset,
                                       uint64_t bytes) override {
    if (absl::Status refused = Refuse("range", key); !refused.ok()) return refused;
    absl::MutexLock lock(&mutex_);
    ++gets_;
    const auto found = objects_.find(std::string(key));
    if (found == objects_.end()) return absl::NotFoundError(key);
    const std::string& body = found->second.body;
    if (offset >= body.size()) return std::string();
    std::string part = body.substr(offset, bytes);
    bytes_got_ += part.size();
    return part;
  }
  absl::StatusOr<std::string> PutNew(absl::string_view key, absl::string_view body) override {
    if (absl::Status refused = Refuse("new", key); !refused.ok()) return refused;
    absl::MutexLock lock(&mutex_);
    if (objects_.contains(std::string(key))) return absl::AlreadyExistsError(key);
    return Write(key, body);
  }
  absl::StatusOr<std::string> PutIf(absl::string_view key, absl::string_view tag,
                                    absl::string_view body) override {
    if (absl::Status refused = Refuse("if", key); !refused.ok()) return refused;
    absl::MutexLock lock(&mutex_);
    const auto found = objects_.find(std::string(key));
    if (found == objects_.end() || found->second.tag != tag) {
      return absl::FailedPreconditionError(key);
    }
    std::string tag_now = Write(key, body);
    if (answers_to_lose_-- > 0) return absl::UnavailableError("the answer is lost");
    return tag_now;
  }
  absl::StatusOr<std::string> Put(absl::string_view key, absl::string_view body) override {
    if (absl::Status refused = Refuse("put", key); !refused.ok()) return refused;
    absl::MutexLock lock(&mutex_);
    return Write(key, body);
  }
  absl::StatusOr<ObjectPage> List(absl::string_view prefix, absl::string_view /*from*/) override {
    if (absl::Status refused = Refuse("list", prefix); !refused.ok()) return refused;
    absl::MutexLock lock(&mutex_);
    ObjectPage page;
    for (const auto& [key, object] : objects_) {
      if (absl::StartsWith(key, prefix)) page.objects.push_back({key, object.body.size()});
    }
    return page;
  }
  absl::Status Delete(absl::string_view key) override {
    if (absl::Status refused = Refuse("delete", key); !refused.ok()) return refused;
    absl::MutexLock lock(&mutex_);
    objects_.erase(std::string(key));
    return absl::OkStatus();
  }

 private:
  absl::Status Refuse(absl::string_view call, absl::string_view key) const {
    return before_ == nullptr ? absl::OkStatus() : before_(call, key);
  }
  std::string Write(absl::string_view key, absl::string_view body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    StoredObject& object = objects_[std::string(key)];
    object.body = std::string(body);
    object.tag = absl::StrCat("tag-", ++writes_);
    return object.tag;
  }

  Before before_;
  mutable absl::Mutex mutex_;
  std::map<std::string, StoredObject> objects_ ABSL_GUARDED_BY(mutex_);
  int gets_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_got_ ABSL_GUARDED_BY(mutex_) = 0;
  int answers_to_lose_ = 0;
  uint64_t writes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::storage
