#include "tests/support/fake_bucket.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/crc32c.h"

namespace tacho::storage {

using Kind = BucketRequest::Kind;

BucketAnswer BucketContents::Apply(const BucketRequest& request) {
  BucketAnswer answer;
  bool changed = false;
  {
    const absl::MutexLock lock(&mutex_);
    if (request.kind == Kind::kList) return List(request);
    if (!request.writes()) return Read(request);
    answer = Write(request);
    changed = answer.status.ok();
  }
  if (changed && observer_) {
    observer_(request.key, request.kind == Kind::kDelete ? nullptr : &request.body);
  }
  return answer;
}

BucketAnswer BucketContents::Read(const BucketRequest& request) const {
  const auto found = objects_.find(request.key);
  if (found == objects_.end()) {
    return {absl::NotFoundError(absl::StrCat("there is no object ", request.key))};
  }
  const auto& [body, tag] = found->second;
  if (request.kind == Kind::kGetRange) {
    const uint64_t begin = std::min<uint64_t>(request.offset, body.size());
    return {.body = body.substr(begin, request.bytes)};
  }
  const bool unchanged = request.kind == Kind::kGetIfChanged && request.tag == tag;
  if (unchanged) return {.unchanged = true};
  return {.body = body, .tag = tag};
}

BucketAnswer BucketContents::List(const BucketRequest& request) const {
  BucketAnswer answer;
  // `from` is the last key of the page before.
  auto object =
      request.tag.empty() ? objects_.lower_bound(request.key) : objects_.upper_bound(request.tag);
  for (; object != objects_.end() && absl::StartsWith(object->first, request.key); ++object) {
    if (answer.page.objects.size() == page_size_) {
      answer.page.next = answer.page.objects.back().key;
      break;
    }
    answer.page.objects.push_back({object->first, object->second.body.size()});
  }
  return answer;
}

absl::Status BucketContents::Condition(const BucketRequest& request) const {
  const auto found = objects_.find(request.key);
  const bool blind = personality_ == BucketPersonality::kRgwVersioned;
  if (request.kind == Kind::kPutNew && !blind && found != objects_.end()) {
    return absl::AlreadyExistsError(absl::StrCat("there is an object ", request.key));
  }
  if (request.kind == Kind::kPutIf &&
      (blind || found == objects_.end() || found->second.tag != request.tag)) {
    return absl::FailedPreconditionError(absl::StrCat(request.key, " is another version"));
  }
  return absl::OkStatus();
}

BucketAnswer BucketContents::Write(const BucketRequest& request) {
  if (request.kind == Kind::kDelete) {
    objects_.erase(request.key);
    return {};
  }
  if (absl::Status refused = Condition(request); !refused.ok()) return {std::move(refused)};
  Object& object = objects_[request.key];
  object = {request.body, NewTag(request.body)};
  return {.tag = object.tag};
}

std::string BucketContents::NewTag(const std::string& body) {
  if (personality_ == BucketPersonality::kGcs) return absl::StrCat(++generation_);
  // As an ETag: the same for the same bytes, another for others.
  return absl::StrFormat("%08x%08x%x", ExtendCrc32c(0, body.data(), body.size()),
                         ExtendCrc32c(1, body.data(), body.size()), body.size());
}

std::optional<std::string> BucketContents::Body(absl::string_view key) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? std::nullopt : std::optional(found->second.body);
}

std::vector<std::string> BucketContents::Keys() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, object] : objects_) keys.push_back(key);
  return keys;
}

void FakeBucket::set_faults(Faults faults) {
  const absl::MutexLock lock(&mutex_);
  faults_ = faults ? std::make_shared<Faults>(std::move(faults)) : nullptr;
}

BucketAnswer FakeBucket::Ask(BucketRequest request) {
  std::shared_ptr<Faults> faults;
  {
    const absl::MutexLock lock(&mutex_);
    ++counts_[request.kind];
    faults = faults_;
  }
  const absl::Status unavailable = absl::UnavailableError("a fault of the test");
  switch (faults ? (*faults)(request) : BucketFault::kNone) {
    case BucketFault::kNone:
      return contents_.Apply(request);
    case BucketFault::kRefused:
      return {unavailable};
    case BucketFault::kAnswerLost:
      contents_.Apply(request);
      return {unavailable};
    case BucketFault::kTwice:
      contents_.Apply(request);
      return contents_.Apply(request);
    case BucketFault::kForbidden:
      return {absl::PermissionDeniedError("a fault of the test")};
    case BucketFault::kLate:
      break;
  }
  const absl::MutexLock lock(&mutex_);
  late_.push_back(std::move(request));
  return {unavailable};
}

void FakeBucket::DeliverLate() {
  std::vector<BucketRequest> late;
  {
    const absl::MutexLock lock(&mutex_);
    late.swap(late_);
  }
  for (const BucketRequest& request : late) contents_.Apply(request);
}

uint64_t FakeBucket::requests() const {
  const absl::MutexLock lock(&mutex_);
  uint64_t sum = 0;
  for (const auto& [kind, count] : counts_) sum += count;
  return sum;
}

uint64_t FakeBucket::requests(BucketRequest::Kind kind) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = counts_.find(kind);
  return found == counts_.end() ? 0 : found->second;
}

void FakeBucket::ResetCounts() {
  const absl::MutexLock lock(&mutex_);
  counts_.clear();
}

}  // namespace tacho::storage
