// The same fleet as requests of Prometheus remote write 1.0: what the peers take in.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/bench/columns_file.h"
#include "tests/bench/fleet_generator.h"
#include "tests/bench/post_connection.h"

namespace tacho::bench {

// POSTs of one host, snappy-compressed, `rows` rows each.
std::vector<Post> MakeRemoteWrites(const FleetOptions& options, uint32_t host, uint32_t rows,
                                   uint32_t requests);

// The same for real columns, one table a request, in order of time.
std::vector<Post> MakeReplayWrites(const ReplayOptions& options,
                                   const std::vector<ColumnTable>& tables);

}  // namespace tacho::bench
