// A fleet's data as the bytes of tacho.v1.ClientMessage, made before anything is timed.
#pragma once

#include <cstdint>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "tests/bench/columns_file.h"
#include "tests/bench/fleet_generator.h"

namespace tacho::bench {

// What one agent sends on its stream.
struct AgentMessages {
  grpc::ByteBuffer hello;
  std::vector<grpc::ByteBuffer> layouts;
  std::vector<grpc::ByteBuffer> batches;  // Batch i has sequence i + 1.
};

// The messages of one agent for hosts first_host .. first_host + hosts - 1 (one layout each; more
// than one only to make many series on few connections): batches of `rows` rows, host after host,
// `batches` for each.
AgentMessages MakeAgentMessages(const FleetOptions& options, uint32_t first_host, uint32_t hosts,
                                uint32_t rows, uint32_t batches);

// The same for real columns: a layout a table, batches of all tables in order of time.
AgentMessages MakeReplayMessages(const ReplayOptions& options,
                                 const std::vector<ColumnTable>& tables);

}  // namespace tacho::bench
