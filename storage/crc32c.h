// CRC-32C (Castagnoli): the checksum of journal entries. docs/decisions/0005 says why the client
// library has its own.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tacho::storage {

uint32_t Crc32c(absl::string_view bytes);

// The checksum of what `crc` is the checksum of, followed by `bytes`.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

}  // namespace tacho::storage
