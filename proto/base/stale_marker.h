// "This series has no value in this row": Prometheus' stale marker, one of the NaNs. Every other
// NaN is a value. (prometheus/model/value/value.go: StaleNaN.)
#pragma once

#include <bit>
#include <cstdint>

namespace tacho {

inline constexpr uint64_t kStaleMarkerBits = 0x7ff0000000000002;

constexpr double StaleMarker() { return std::bit_cast<double>(kStaleMarkerBits); }
inline bool IsStaleMarker(double value) {
  return std::bit_cast<uint64_t>(value) == kStaleMarkerBits;
}

}  // namespace tacho
