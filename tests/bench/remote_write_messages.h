// The same fleet as requests of Prometheus remote write 1.0: what the peers take in.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/bench/columns_file.h"
#include "tests/bench/fleet_generator.h"
#include "tests/bench/post_connection.h"

namespace tacho::bench {

// POSTs of `hosts` hosts from the first on, snappy-compressed, `rows` rows of each host in each.
std::vector<Post> MakeRemoteWrites(const FleetOptions& options, uint32_t first_host, uint32_t hosts,
                                   uint32_t rows, uint32_t requests);

// The same for real columns, one table a request, in order of time.
std::vector<Post> MakeReplayWrites(const ReplayOptions& options,
                                   const std::vector<ColumnTable>& tables);

}  // namespace tacho::bench
