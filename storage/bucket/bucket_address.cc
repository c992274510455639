#include "storage/bucket/bucket_address.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace tacho::storage {
namespace {

constexpr size_t kMaxKeyBytes = 900;  // S3 takes 1,024, the prefix included.

bool IsKeyByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_' ||
         c == '/';
}

absl::Status CheckCharacters(absl::string_view what, absl::string_view text) {
  for (const char c : text) {
    if (!IsKeyByte(c)) {
      return absl::InvalidArgumentError(absl::StrCat(what, " '", absl::CHexEscape(text),
                                                     "': only A-Z a-z 0-9 - . _ / are possible"));
    }
  }
  // Servers and proxies make another path of these.
  for (const absl::string_view part : absl::StrSplit(text, '/')) {
    if (part == "." || part == "..") {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " '", text, "': no part may be '.' or '..'"));
    }
  }
  if (text.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat(what, " has ", text.size(), " bytes; at most ",
                                                   kMaxKeyBytes, " are possible"));
  }
  return absl::OkStatus();
}

absl::Status CheckBucketName(absl::string_view name, const std::string& url) {
  bool good = name.size() >= 3 && name.size() <= 222;
  for (const char c : name) good &= IsKeyByte(c) && c != '/';
  if (good && name.front() != '.' && name.back() != '.' && !absl::StrContains(name, "..")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the bucket's url '", absl::CHexEscape(url),
                   "': expected s3://BUCKET/PREFIX or gs://BUCKET/PREFIX, with a name of 3 or more "
                   "of a-z 0-9 - ."));
}

std::string Variable(const BucketOptions& options, const char* name) {
  const char* value = options.environment ? options.environment(name) : std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string RegionOf(const BucketOptions& options) {
  std::string region = options.region;
  if (region.empty()) region = Variable(options, "AWS_REGION");
  if (region.empty()) region = Variable(options, "AWS_DEFAULT_REGION");
  return region.empty() ? "us-east-1" : region;
}

absl::StatusOr<std::string> EndpointOf(const BucketOptions& options, const BucketAddress& address) {
  if (options.endpoint.empty()) {
    if (address.dialect == BucketDialect::kGcs) return "https://storage.googleapis.com";
    const absl::string_view china = absl::StartsWith(address.region, "cn-") ? ".cn" : "";
    return absl::StrCat("https://s3.", address.region, ".amazonaws.com", china);
  }
  absl::string_view host = options.endpoint;
  const bool known =
      absl::ConsumePrefix(&host, "http://") || absl::ConsumePrefix(&host, "https://");
  host = absl::StripSuffix(host, "/");
  bool good = known && !host.empty();
  for (const char c : host) good &= (IsKeyByte(c) && c != '/') || c == ':' || c == '[' || c == ']';
  if (!good) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bucket's endpoint '", absl::CHexEscape(options.endpoint),
                     "': expected http://HOST:PORT or https://HOST:PORT, without a path"));
  }
  return std::string(absl::StripSuffix(options.endpoint, "/"));
}

}  // namespace

std::string BucketAddress::NameOf(absl::string_view key) const {
  return absl::StrCat(dialect == BucketDialect::kGcs ? "gs://" : "s3://", bucket, "/", prefix, key);
}

std::string BucketAddress::ObjectUrl(absl::string_view key) const {
  return absl::StrCat(root, "/", prefix, key);
}

std::string BucketAddress::ListUrl(absl::string_view key_prefix, absl::string_view from) const {
  std::string url = absl::StrCat(root, "/?");
  if (!from.empty()) absl::StrAppend(&url, "continuation-token=", EscapeQuery(from), "&");
  absl::StrAppend(
      &url, "list-type=2&max-keys=1000&prefix=", EscapeQuery(absl::StrCat(prefix, key_prefix)));
  return url;
}

absl::StatusOr<BucketAddress> ParseBucketAddress(const BucketOptions& options) {
  BucketAddress address;
  absl::string_view rest = options.url;
  if (absl::ConsumePrefix(&rest, "gs://")) {
    address.dialect = BucketDialect::kGcs;
  } else if (!absl::ConsumePrefix(&rest, "s3://")) {
    return CheckBucketName("", options.url);
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('/', 1));
  TACHO_RETURN_IF_ERROR(CheckBucketName(parts.first, options.url));
  address.bucket = std::string(parts.first);
  address.prefix = std::string(absl::StripSuffix(parts.second, "/"));
  TACHO_RETURN_IF_ERROR(CheckCharacters("the prefix of the bucket's url", address.prefix));
  if (address.prefix.size() > 100 || absl::StartsWith(address.prefix, "/") ||
      absl::StrContains(address.prefix, "//")) {
    return absl::InvalidArgumentError(
        absl::StrCat("the prefix of the bucket's url '", options.url,
                     "': expected at most 100 bytes, without two slashes beside each other"));
  }
  if (!address.prefix.empty()) address.prefix += '/';
  address.region = RegionOf(options);
  TACHO_ASSIGN_OR_RETURN(const std::string endpoint, EndpointOf(options, address));
  if (options.path_style || address.dialect == BucketDialect::kGcs ||
      absl::StrContains(address.bucket, '.')) {
    address.root = absl::StrCat(endpoint, "/", address.bucket);
  } else {
    const size_t host = endpoint.find("://") + 3;
    address.root =
        absl::StrCat(endpoint.substr(0, host), address.bucket, ".", endpoint.substr(host));
  }
  return address;
}

absl::Status CheckKeyPrefix(absl::string_view prefix) {
  return CheckCharacters("the prefix of keys", prefix);
}

absl::Status CheckKey(absl::string_view key) {
  if (key.empty() || key.front() == '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("the key '", key, "' is empty or begins with a slash"));
  }
  return CheckCharacters("the key", key);
}

std::string EscapeQuery(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if ((IsKeyByte(c) && c != '/') || c == '~') {
      escaped += c;
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

}  // namespace tacho::storage
