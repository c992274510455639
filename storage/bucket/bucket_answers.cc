#include "storage/bucket/bucket_answers.h"

#include <cstring>
#include <pugixml.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/json_text.h"
#include "storage/bucket/bucket_address.h"

namespace tacho::storage {
namespace {

// Entities as XML has them; no DOCTYPE is looked at.
bool Load(absl::string_view body, pugi::xml_document* document) {
  return static_cast<bool>(
      document->load_buffer(body.data(), body.size(), pugi::parse_default, pugi::encoding_utf8));
}

std::string TextOf(const pugi::xml_node& node, const char* child) {
  return node.child(child).text().get();
}

}  // namespace

ErrorAnswer ParseErrorAnswer(absl::string_view body) {
  ErrorAnswer answer;
  pugi::xml_document document;
  if (!Load(body, &document)) return answer;
  pugi::xml_node error = document.child("Error");
  // STS puts it one deeper.
  if (!error) error = document.child("ErrorResponse").child("Error");
  answer.code = ValidUtf8(TextOf(error, "Code").substr(0, kMaxErrorText));
  answer.message = ValidUtf8(TextOf(error, "Message").substr(0, kMaxErrorText));
  answer.region = ValidUtf8(TextOf(error, "Region").substr(0, kMaxErrorText));
  return answer;
}

absl::StatusOr<ObjectPage> ParseListing(absl::string_view body, absl::string_view strip) {
  pugi::xml_document document;
  const bool read = Load(body, &document);
  const pugi::xml_node result = document.child("ListBucketResult");
  if (!read || !result) {
    return absl::InvalidArgumentError(absl::StrCat("the answer is no listing of objects: ",
                                                   absl::CHexEscape(body.substr(0, 100))));
  }
  ObjectPage page;
  for (const pugi::xml_node& object : result.children("Contents")) {
    const std::string whole = TextOf(object, "Key");
    absl::string_view key = whole;
    if (!absl::ConsumePrefix(&key, strip) || !CheckKey(key).ok()) continue;
    uint64_t bytes = 0;
    if (!absl::SimpleAtoi(TextOf(object, "Size"), &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the listing gives no size of ", std::string(key)));
    }
    page.objects.push_back({std::string(key), bytes});
  }
  if (TextOf(result, "IsTruncated") == "true") {
    page.next = TextOf(result, "NextContinuationToken");
    if (page.next->empty()) {
      return absl::InvalidArgumentError("the listing goes on, but does not say from where");
    }
  }
  return page;
}

absl::string_view BareTag(absl::string_view etag) {
  absl::ConsumePrefix(&etag, "W/");
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return etag;
}

std::optional<uint64_t> ParseRangeStart(absl::string_view content_range) {
  if (!absl::ConsumePrefix(&content_range, "bytes ")) return std::nullopt;
  const size_t dash = content_range.find('-');
  uint64_t start = 0;
  if (dash == absl::string_view::npos || !absl::SimpleAtoi(content_range.substr(0, dash), &start)) {
    return std::nullopt;
  }
  return start;
}

absl::StatusOr<AssumedRole> ParseAssumedRole(absl::string_view body) {
  pugi::xml_document document;
  const bool read = Load(body, &document);
  const pugi::xml_node found = document.child("AssumeRoleWithWebIdentityResponse")
                                   .child("AssumeRoleWithWebIdentityResult")
                                   .child("Credentials");
  AssumedRole role{.key_id = TextOf(found, "AccessKeyId"),
                   .secret = TextOf(found, "SecretAccessKey"),
                   .session_token = TextOf(found, "SessionToken"),
                   .expiration = TextOf(found, "Expiration")};
  if (!read || role.key_id.empty() || role.secret.empty()) {
    return absl::InvalidArgumentError("the answer has no credentials");
  }
  return role;
}

}  // namespace tacho::storage
