// The same fleet as requests of Prometheus remote write 1.0: what the peers take in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/fleet_generator.h"

namespace tacho::bench {

// Complete HTTP/1.1 POSTs of one host, snappy-compressed, `rows` rows each.
std::vector<std::string> MakeRemoteWrites(const FleetOptions& options, uint32_t host, uint32_t rows,
                                          uint32_t requests);

}  // namespace tacho::bench
