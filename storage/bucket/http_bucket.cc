// Each call builds a request, and Perform() sends it as often as the rules allow. A request is
// signed anew for each try, because the signature has the time in it.
#include "storage/bucket/http_bucket.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "storage/bucket/bucket_answers.h"
#include "storage/bucket/credential_chain.h"

namespace tacho::storage {
namespace {

constexpr int kMaxTries = 5;
constexpr absl::Duration kPause = absl::Milliseconds(100);  // Doubles with each try.

std::string Sha256Hex(absl::string_view body) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  TACHO_CHECK(EVP_Digest(body.data(), body.size(), hash, &size, EVP_sha256(), nullptr) == 1);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(hash), size));
}

// Between half of it and one and a half: many that were refused together do not come together
// again.
absl::Duration Jittered(absl::Duration pause) {
  thread_local absl::BitGen random;
  return pause * absl::Uniform(random, 0.5, 1.5);
}

}  // namespace

HttpBucket::HttpBucket(BucketOptions options, BucketAddress address, std::unique_ptr<HttpPool> http,
                       FetchCredentials fetch)
    : options_(std::move(options)),
      address_(std::move(address)),
      http_(std::move(http)),
      keeper_(std::move(fetch)) {}

HttpBucket::Request HttpBucket::ObjectRequest(BucketCall call, const char* method,
                                              absl::string_view key) const {
  return {
      .call = call, .method = method, .url = address_.ObjectUrl(key), .name = address_.NameOf(key)};
}

HttpCall HttpBucket::Sign(const Request& request, const Credentials& credentials) const {
  HttpCall call{.method = request.method,
                .url = request.url,
                .headers = request.headers,
                .body = request.body,
                .max_answer_bytes = request.max_answer_bytes};
  if (IsWrite(request.call)) call.headers.emplace_back("Content-Type: application/octet-stream");
  if (!credentials.bearer.empty()) {
    call.headers.push_back(absl::StrCat("Authorization: Bearer ", credentials.bearer));
    return call;
  }
  call.key_id = credentials.key_id;
  call.secret = credentials.secret;
  // Google refuses requests that have headers of both kinds.
  const char* vendor = IsGoogle() ? "goog" : "amz";
  call.signing =
      IsGoogle() ? "goog:goog:auto:storage" : absl::StrCat("aws:amz:", address_.region, ":s3");
  call.headers.push_back(absl::StrCat("x-", vendor, "-content-sha256: ", Sha256Hex(request.body)));
  if (!credentials.session_token.empty()) {
    call.headers.push_back(
        absl::StrCat("x-", vendor, "-security-token: ", credentials.session_token));
  }
  return call;
}

void HttpBucket::Report(const Request& request, const HttpReply& reply, absl::Duration took,
                        Again again) {
  if (!options_.on_request) return;
  options_.on_request({.operation = NameOf(request.call),
                       .code = reply.status,
                       .took = took,
                       .bytes_sent = request.body.size(),
                       .bytes_received = reply.body.size(),
                       .retry = NameOf(again)});
}

absl::StatusOr<HttpReply> HttpBucket::Perform(const Request& request) {
  const absl::Time end = MonotonicNow() + options_.timeout;
  absl::Duration patience = request.quick ? options_.slow_after : options_.timeout;
  bool fresh = false;
  bool renewed = false;
  for (int tries = 1;; ++tries) {
    TACHO_ASSIGN_OR_RETURN(const Credentials credentials, keeper_.Get());
    HttpCall call = Sign(request, credentials);
    const absl::Time began = MonotonicNow();
    // Even the last try gets a moment.
    call.patience = std::max(std::min(patience, end - began), options_.slow_after / 4);
    call.quick = request.quick;
    call.fresh = fresh;
    HttpReply reply = http_->Send(call);
    const absl::Time now = MonotonicNow();
    Again again = ShouldRepeat(request.call, reply);
    const absl::Duration pause = again == Again::kSlow || again == Again::kExpired
                                     ? absl::ZeroDuration()
                                     : Jittered(kPause * (1 << tries));
    if (again == Again::kExpired) {
      keeper_.Refuse(credentials);
      if (std::exchange(renewed, true)) again = Again::kNo;
    }
    if (tries == kMaxTries || now + pause >= end) again = Again::kNo;
    Report(request, reply, now - began, again);
    if (again == Again::kNo) {
      const bool nothing = (reply.status == 304 && request.call == BucketCall::kGetIfChanged) ||
                           (reply.status == 416 && request.call == BucketCall::kGetRange);
      if (nothing) return reply;
      TACHO_RETURN_IF_ERROR(StatusOf(request.call, reply, request.name, credentials.source));
      return reply;
    }
    if (again == Again::kSlow) patience = tries == 1 ? patience * 2 : options_.timeout;
    fresh = again == Again::kSlow || again == Again::kFailed;
    absl::SleepFor(pause);
  }
}

std::string HttpBucket::Tag(const HttpReply& reply) const {
  const absl::string_view etag = reply.Header("etag");
  if (!IsGoogle()) return std::string(BareTag(etag));
  return absl::StrCat(reply.Header("x-goog-generation"), " ", etag);
}

absl::StatusOr<StoredObject> HttpBucket::ObjectOf(HttpReply reply, const std::string& name) const {
  StoredObject object{.body = std::move(reply.body), .tag = Tag(reply)};
  if (object.tag.empty() || object.tag.front() == ' ') {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": the answer has no ", IsGoogle() ? "x-goog-generation" : "ETag",
        ", without which nothing can be replaced: is the endpoint one of an object store?"));
  }
  return object;
}

absl::StatusOr<StoredObject> HttpBucket::Get(absl::string_view key) {
  TACHO_RETURN_IF_ERROR(CheckKey(key));
  Request request = ObjectRequest(BucketCall::kGet, "GET", key);
  request.max_answer_bytes = kMaxObjectBytes;
  request.quick = false;
  TACHO_ASSIGN_OR_RETURN(HttpReply reply, Perform(request));
  return ObjectOf(std::move(reply), request.name);
}

absl::StatusOr<std::optional<StoredObject>> HttpBucket::GetIfChanged(absl::string_view key,
                                                                     absl::string_view tag) {
  TACHO_RETURN_IF_ERROR(CheckKey(key));
  Request request = ObjectRequest(BucketCall::kGetIfChanged, "GET", key);
  request.max_answer_bytes = kMaxObjectBytes;
  request.quick = false;
  const absl::string_view etag = IsGoogle() ? tag.substr(std::min(tag.find(' '), tag.size())) : tag;
  // Reads take quotes everywhere, and at AWS the standard's form is documented.
  request.headers.push_back(
      absl::StrCat("If-None-Match: \"", BareTag(absl::StripAsciiWhitespace(etag)), "\""));
  TACHO_ASSIGN_OR_RETURN(HttpReply reply, Perform(request));
  if (reply.status == 304) return std::optional<StoredObject>();
  TACHO_ASSIGN_OR_RETURN(StoredObject object, ObjectOf(std::move(reply), request.name));
  // A service that does not know the condition sends all of it.
  if (object.tag == tag) return std::optional<StoredObject>();
  return std::optional<StoredObject>(std::move(object));
}

absl::StatusOr<std::string> HttpBucket::GetRange(absl::string_view key, uint64_t offset,
                                                 uint64_t bytes) {
  TACHO_RETURN_IF_ERROR(CheckKey(key));
  Request request = ObjectRequest(BucketCall::kGetRange, "GET", key);
  // No byte still has to tell whether the object is there.
  const uint64_t wanted = std::clamp<uint64_t>(bytes, 1, kMaxObjectBytes);
  const uint64_t last = std::numeric_limits<int64_t>::max();
  if (offset > last - wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.name, ": no object has a byte ", offset));
  }
  request.headers.push_back(absl::StrCat("Range: bytes=", offset, "-", offset + wanted - 1));
  request.max_answer_bytes = kMaxObjectBytes;
  request.quick = wanted <= kQuickBytes;
  TACHO_ASSIGN_OR_RETURN(HttpReply reply, Perform(request));
  if (reply.status == 416) return std::string();
  if (reply.status == 206) {
    if (ParseRangeStart(reply.Header("content-range")) != offset) {
      return absl::UnavailableError(absl::StrCat(
          request.name, ": asked for bytes from ", offset, " on, got those of Content-Range '",
          reply.Header("content-range"), "': is a proxy between?"));
    }
    reply.body.resize(std::min<uint64_t>(reply.body.size(), bytes));
    return std::move(reply.body);
  }
  // A service may answer all of it.
  if (offset >= reply.body.size()) return std::string();
  return reply.body.substr(offset, bytes);
}

absl::StatusOr<std::string> HttpBucket::Write(BucketCall call, absl::string_view key,
                                              std::string condition, absl::string_view body) {
  TACHO_RETURN_IF_ERROR(CheckKey(key));
  Request request = ObjectRequest(call, "PUT", key);
  if (!condition.empty()) request.headers.push_back(std::move(condition));
  request.body = body;
  request.quick = body.size() <= kQuickBytes;
  TACHO_ASSIGN_OR_RETURN(const HttpReply reply, Perform(request));
  return Tag(reply);
}

absl::StatusOr<std::string> HttpBucket::PutNew(absl::string_view key, absl::string_view body) {
  return Write(BucketCall::kPutNew, key,
               IsGoogle() ? "x-goog-if-generation-match: 0" : "If-None-Match: *", body);
}

absl::StatusOr<std::string> HttpBucket::PutIf(absl::string_view key, absl::string_view tag,
                                              absl::string_view body) {
  if (tag.empty() || tag.find_first_of("\r\n") != absl::string_view::npos) {
    return absl::InvalidArgumentError("a tag is empty, or has more than one line");
  }
  std::string condition;
  if (IsGoogle()) {
    condition = absl::StrCat("x-goog-if-generation-match: ", tag.substr(0, tag.find(' ')));
  } else {
    const bool quote = options_.quote_tags && tag.front() != '"';
    condition = absl::StrCat("If-Match: ", quote ? "\"" : "", tag, quote ? "\"" : "");
  }
  return Write(BucketCall::kPutIf, key, std::move(condition), body);
}

absl::StatusOr<std::string> HttpBucket::Put(absl::string_view key, absl::string_view body) {
  return Write(BucketCall::kPut, key, "", body);
}

absl::StatusOr<ObjectPage> HttpBucket::List(absl::string_view prefix, absl::string_view from) {
  TACHO_RETURN_IF_ERROR(CheckKeyPrefix(prefix));
  const Request request{.call = BucketCall::kList,
                        .method = "GET",
                        .url = address_.ListUrl(prefix, from),
                        .name = address_.NameOf(prefix)};
  TACHO_ASSIGN_OR_RETURN(const HttpReply reply, Perform(request));
  auto page = ParseListing(reply.body, address_.prefix);
  if (page.ok()) return page;
  return absl::InvalidArgumentError(
      absl::StrCat("list ", request.name, ": ", page.status().message()));
}

absl::Status HttpBucket::Delete(absl::string_view key) {
  TACHO_RETURN_IF_ERROR(CheckKey(key));
  const auto reply = Perform(ObjectRequest(BucketCall::kDelete, "DELETE", key));
  return reply.status();
}

absl::Status HttpBucket::PutDamaged(absl::string_view key) {
  TACHO_RETURN_IF_ERROR(CheckKey(key));
  TACHO_ASSIGN_OR_RETURN(const Credentials credentials, keeper_.Get());
  Request request = ObjectRequest(BucketCall::kPut, "PUT", key);
  request.body = "as it was";
  HttpCall call = Sign(request, credentials);
  call.body = "as it is!";  // As long as the other one.
  const HttpReply reply = http_->Send(call);
  if (reply.status == 200) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(request.name, ": ", reply.status, reply.error));
}

absl::StatusOr<std::unique_ptr<Bucket>> OpenBucket(BucketOptions options) {
  if (!options.environment)
    options.environment = [](const char* name) { return std::getenv(name); };
  if (options.timeout <= absl::ZeroDuration() || options.slow_after <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("the bucket's timeout: expected a time above zero, like 10s");
  }
  TACHO_ASSIGN_OR_RETURN(BucketAddress address, ParseBucketAddress(options));
  auto http = std::make_unique<HttpPool>(options.ca_file);
  TACHO_ASSIGN_OR_RETURN(
      FetchCredentials fetch,
      ChooseCredentials(
          options.credentials, address.dialect,
          {.environment = options.environment, .region = address.region, .http = http.get()}));
  return std::make_unique<HttpBucket>(std::move(options), std::move(address), std::move(http),
                                      std::move(fetch));
}

}  // namespace tacho::storage
