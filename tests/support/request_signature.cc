// The signature of a request, computed from what the server got.
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/support/fake_object_store.h"

namespace tacho::testing {
namespace {

std::string Hmac(const std::string& key, const std::string& text) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash, &size);
  return std::string(reinterpret_cast<const char*>(hash), size);
}

std::string HashHex(absl::string_view text) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), hash, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(hash), size));
}

// The fields of "AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…".
std::map<std::string, std::string> FieldsOf(absl::string_view authorization) {
  std::map<std::string, std::string> fields;
  for (const absl::string_view field : absl::StrSplit(authorization, absl::ByAnyChar(", "))) {
    const std::vector<std::string> pair = absl::StrSplit(field, absl::MaxSplits('=', 1));
    if (pair.size() == 2) fields[pair[0]] = pair[1];
  }
  return fields;
}

std::string Canonical(const FakeObjectStore::Request& request, const std::string& signed_headers,
                      const std::string& vendor) {
  std::vector<std::string> query = absl::StrSplit(request.query, '&', absl::SkipEmpty());
  std::sort(query.begin(), query.end());
  std::string text =
      absl::StrCat(request.method, "\n", request.path, "\n", absl::StrJoin(query, "&"), "\n");
  for (const absl::string_view part : absl::StrSplit(signed_headers, ';')) {
    const std::string name(part);
    const auto header = request.headers.find(name);
    absl::StrAppend(&text, name, ":", header == request.headers.end() ? "" : header->second, "\n");
  }
  const auto hash = request.headers.find(absl::StrCat("x-", vendor, "-content-sha256"));
  absl::StrAppend(&text, "\n", signed_headers, "\n",
                  hash == request.headers.end() ? "" : hash->second);
  return text;
}

}  // namespace

std::string SignatureFault(const FakeObjectStore::Request& request, absl::string_view key_id,
                           absl::string_view secret) {
  const auto header = request.headers.find("authorization");
  if (header == request.headers.end()) return "no Authorization";
  const bool google = absl::StartsWith(header->second, "GOOG4-HMAC-SHA256");
  const std::string kind = google ? "GOOG4" : "AWS4";
  const std::string vendor = google ? "goog" : "amz";
  if (!absl::StartsWith(header->second, kind)) return "another kind of signature";
  auto fields = FieldsOf(header->second);
  const std::vector<std::string> scope = absl::StrSplit(fields["Credential"], '/');
  const auto date = request.headers.find(absl::StrCat("x-", vendor, "-date"));
  if (scope.size() != 5 || date == request.headers.end()) return "no scope or no date";
  if (scope[0] != key_id) return "another key";
  // All of the vendor's headers must be signed.
  for (const auto& [name, value] : request.headers) {
    if (!absl::StartsWith(name, absl::StrCat("x-", vendor, "-")) && name != "host") continue;
    const std::vector<std::string> names = absl::StrSplit(fields["SignedHeaders"], ';');
    if (std::find(names.begin(), names.end(), name) == names.end()) return name + " is not signed";
  }
  const std::string to_sign =
      absl::StrCat(kind, "-HMAC-SHA256\n", date->second, "\n",
                   absl::StrJoin(scope.begin() + 1, scope.end(), "/"), "\n",
                   HashHex(Canonical(request, fields["SignedHeaders"], vendor)));
  std::string key = absl::StrCat(kind, secret);
  for (size_t i = 1; i < scope.size(); ++i) key = Hmac(key, scope[i]);
  if (absl::BytesToHexString(Hmac(key, to_sign)) != fields["Signature"]) return "wrong signature";
  return "";
}

}  // namespace tacho::testing
