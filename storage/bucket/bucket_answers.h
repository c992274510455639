// Reads what a bucket's service answers: listings and errors in XML, tags and ranges in headers.
// These bytes are from another party.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"

namespace tacho::storage {

// <Error><Code>NoSuchKey</Code><Message>…</Message></Error>, as S3's API reference has it. Google's
// XML API and Ceph write the same.
struct ErrorAnswer {
  std::string code;  // Empty if the body is something else, an HTML page of a proxy for instance.
  std::string message;  // Of at most kMaxErrorText bytes.
  std::string region;   // The one to use, where the service says so.
};
inline constexpr size_t kMaxErrorText = 300;
ErrorAnswer ParseErrorAnswer(absl::string_view body);

// A page of a ListBucketResult of version 2. `strip` is removed from the front of each key; keys
// without it are left out, and those with characters that bucket.h does not have.
//   INVALID_ARGUMENT  it is no such page.
absl::StatusOr<ObjectPage> ParseListing(absl::string_view body, absl::string_view strip);

// The tag without quotes: "abc" of "\"abc\"" and of "W/\"abc\"".
absl::string_view BareTag(absl::string_view etag);

// The first byte of "bytes 5-9/100"; nullopt if the header is something else.
std::optional<uint64_t> ParseRangeStart(absl::string_view content_range);

// What AssumeRoleWithWebIdentity of AWS' security token service answers.
struct AssumedRole {
  std::string key_id;
  std::string secret;
  std::string session_token;
  std::string expiration;  // RFC 3339; may be empty.
};
//   INVALID_ARGUMENT  it is no such answer.
absl::StatusOr<AssumedRole> ParseAssumedRole(absl::string_view body);

}  // namespace tacho::storage
