// Looks at the bytes of a large message before anything is allocated for it: two bytes there can be
// an object of a hundred here, and a message of 4 MiB some hundred MiB.
#pragma once

#include <cstdint>

#include "google/protobuf/io/zero_copy_stream.h"

namespace tacho::server::ingest {

// Smaller messages cost little whatever is in them, and are not looked at.
constexpr uint64_t kWireCheckBytes = 16 << 10;

// Whether a ClientMessage of `bytes` bytes has no more series than a layout may have, no more
// labels than that many bytes can hold if each has a name and a value, and few fields that nobody
// knows. True for bytes that are no message: parsing will refuse them.
bool HasSaneParts(google::protobuf::io::ZeroCopyInputStream* message, uint64_t bytes,
                  uint64_t max_series);

}  // namespace tacho::server::ingest
