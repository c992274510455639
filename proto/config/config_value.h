// The syntax of values in configuration files: what people write and how it is written back.
// Each Parse function refuses with INVALID_ARGUMENT; the text says what is wrong and what was
// expected, without naming the key. Each Format function writes what its Parse function reads.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::config {

// Nanoseconds of "90s", "10m", "1h30m", "1.5h", "-30d": numbers with the units d, h, m, s, ms, us
// and ns, each at most once, the larger first; or "0". At most about 292 years.
absl::StatusOr<int64_t> ParseDuration(absl::string_view text);
std::string FormatDuration(int64_t nanoseconds);

// Bytes of "4096", "64MiB", "1.5GiB", "2GB": KB, MB, GB, TB are powers of 1000 and KiB, MiB, GiB,
// TiB powers of 1024.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);
std::string FormatBytes(uint64_t bytes);

// "host:port" or "[v6]:port", port 0 to 65535. The host is a name or an IPv4 address; whether it
// resolves is not asked.
absl::Status CheckAddress(absl::string_view text);

// A regular expression that RE2 can compile.
absl::Status CheckRegex(absl::string_view text);

}  // namespace tacho::config
