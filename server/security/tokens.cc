#include "server/security/tokens.h"

#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <cstdlib>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace tacho::server::security {
namespace {

constexpr char kPrefix[] = "tacho_";  // So that scanners for leaked secrets recognise one.

// Limits what is decoded. No token can be longer than three quarters of it.
constexpr size_t kMaxHeaderBytes = 2048;

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::optional<std::string> RandomBytes(int count) {
  std::string bytes(static_cast<size_t>(count), '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), count) != 1) return std::nullopt;
  return bytes;
}

std::string KeyOrDie() {
  auto key = RandomBytes(SHA256_DIGEST_LENGTH);
  if (!key.has_value()) std::abort();  // OpenSSL is not usable at all.
  return *std::move(key);
}

}  // namespace

absl::StatusOr<std::string> NewToken() {
  const auto bytes = RandomBytes(SHA256_DIGEST_LENGTH);
  if (!bytes.has_value()) return absl::UnavailableError("the system provides no random bytes");
  return absl::StrCat(kPrefix, absl::WebSafeBase64Escape(*bytes));
}

std::string Sha256(absl::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(Bytes(bytes), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

BlindIndex::BlindIndex() : key_(KeyOrDie()) {}

std::string BlindIndex::KeyOf(absl::string_view sha256) const {
  TACHO_CHECK(sha256.size() == SHA256_DIGEST_LENGTH);
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), Bytes(sha256), sha256.size(),
       reinterpret_cast<unsigned char*>(digest.data()), &size);
  return digest;
}

std::string TokenOf(absl::string_view authorization, bool over_http) {
  const absl::string_view header = absl::StripAsciiWhitespace(authorization);
  const size_t space = header.find(' ');
  if (space == absl::string_view::npos || header.size() > kMaxHeaderBytes) return "";
  const absl::string_view scheme = header.substr(0, space);
  const absl::string_view value = absl::StripLeadingAsciiWhitespace(header.substr(space));
  if (absl::EqualsIgnoreCase(scheme, "bearer")) return std::string(value);
  if (!over_http) return "";
  if (absl::EqualsIgnoreCase(scheme, "token")) return std::string(value);
  std::string pair;
  if (!absl::EqualsIgnoreCase(scheme, "basic") || !absl::Base64Unescape(value, &pair)) return "";
  const size_t colon = pair.find(':');
  return colon == std::string::npos ? "" : pair.substr(colon + 1);
}

}  // namespace tacho::server::security
