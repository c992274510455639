// Tokens: how they are made, read from requests, and stored.
//
// A token is 256 random bits, so nobody can find it from its SHA-256 by trying. It needs no salt
// and no slow hash, and checking one costs a microsecond.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::server::security {

// Longer ones are refused before they are hashed.
inline constexpr size_t kMaxTokenBytes = 512;

// "tacho_" and 43 characters of A-Z, a-z, 0-9, '-' and '_'. UNAVAILABLE: no randomness to be had.
absl::StatusOr<std::string> NewToken();

// 32 bytes.
std::string Sha256(absl::string_view bytes);

// The key by which a token is looked up: a keyed hash of its SHA-256, with a random key that never
// leaves this process. Nobody outside can choose or guess how far two such hashes agree, so a plain
// hash map reveals no more than a comparison in constant time.
class BlindIndex {
 public:
  BlindIndex();
  // `sha256` has 32 bytes; so has the result.
  std::string KeyOf(absl::string_view sha256) const;

 private:
  const std::string key_;
};

// The token in an HTTP or gRPC "authorization" header: "Bearer TOKEN", or where `over_http`
// "Basic BASE64(anything:TOKEN)" or the "Token TOKEN" of InfluxDB's clients. Empty for another
// scheme, a damaged header or none: its sender learns that no token came.
std::string TokenOf(absl::string_view authorization, bool over_http);

}  // namespace tacho::server::security
