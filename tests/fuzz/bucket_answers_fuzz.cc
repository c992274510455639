// Answers of an object store, or of whatever stands in its place: listings, errors, heads, and what
// services of clouds say about credentials. Keys that come out of a listing are ones that can be
// asked for; no text of theirs grows without bound or has a line break that would start a header.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "storage/bucket/bucket_address.h"
#include "storage/bucket/bucket_answers.h"
#include "storage/bucket/bucket_errors.h"
#include "storage/bucket/credential_sources.h"
#include "storage/bucket/http_pool.h"
#include "storage/bucket/profile_file.h"

namespace storage = tacho::storage;

namespace {

void CheckListing(absl::string_view body) {
  for (const absl::string_view strip : {"", "p/"}) {
    const auto page = storage::ParseListing(body, strip);
    if (!page.ok()) continue;
    for (const storage::ListedObject& object : page->objects) {
      TACHO_CHECK(storage::CheckKey(object.key).ok());
    }
    if (page->next) TACHO_CHECK(!page->next->empty());
  }
}

void CheckErrors(absl::string_view body) {
  const storage::ErrorAnswer error = storage::ParseErrorAnswer(body);
  // U+FFFD takes three bytes in place of one.
  TACHO_CHECK(error.code.size() <= 3 * storage::kMaxErrorText);
  TACHO_CHECK(error.message.size() <= 3 * storage::kMaxErrorText);
  storage::HttpReply reply;
  reply.body = std::string(body);
  for (const int status : {301, 400, 403, 404, 409, 412, 500, 503}) {
    reply.status = status;
    for (const auto call : {storage::BucketCall::kGet, storage::BucketCall::kPutNew,
                            storage::BucketCall::kPutIf, storage::BucketCall::kDelete}) {
      storage::ShouldRepeat(call, reply);
      const absl::Status meaning = storage::StatusOf(call, reply, "s3://b/k", "a file");
      TACHO_CHECK(!meaning.ok() || call == storage::BucketCall::kDelete);
    }
  }
}

void CheckHead(absl::string_view text) {
  std::map<std::string, std::string> headers;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    storage::AddHeaderLine(line, &headers);
  }
  TACHO_CHECK(headers.size() <= storage::kMaxHeaders);
  for (const auto& [name, value] : headers) {
    TACHO_CHECK(storage::BareTag(value).size() <= value.size());
    storage::ParseRangeStart(value);
  }
}

void CheckCredentials(absl::string_view body) {
  const auto found = storage::ParseJsonCredentials(body, "a server");
  if (found.ok()) {
    TACHO_CHECK(!found->key_id.empty() && !found->secret.empty());
    TACHO_CHECK(found->session_token.find_first_of("\r\n") == std::string::npos);
  }
  const auto role = storage::ParseAssumedRole(body);
  if (role.ok()) TACHO_CHECK(!role->key_id.empty() && !role->secret.empty());
  storage::ParseProfiles(body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  CheckListing(text);
  CheckErrors(text);
  CheckHead(text);
  CheckCredentials(text);
  return 0;
}
