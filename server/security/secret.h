// Tokens: how they are made, and what is kept of them.
//
// A token is 256 random bits, so that its SHA-256 cannot be turned back by trying: no salt and no
// slow hash is needed, and checking one costs a microsecond.
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

// What a token is looked up by: a keyed hash of its SHA-256, with a key that this process drew and
// never tells. Comparing two may then take as long as it likes: nobody outside can choose or guess
// how far they agree, so that a plain hash map is as good as a comparison in constant time.
class BlindIndex {
 public:
  BlindIndex();
  // `sha256` has 32 bytes; so has the result.
  std::string KeyOf(absl::string_view sha256) const;

 private:
  const std::string key_;
};

}  // namespace tacho::server::security
