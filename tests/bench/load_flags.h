// What a load program sends and over how many connections: the flags that all of them have.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/bench/columns_file.h"
#include "tests/bench/fleet_generator.h"

namespace tacho::bench {

struct LoadShape {
  std::string columns;  // If not empty, the load is this file on one connection, and no fleet.
  ReplayOptions replay;
  FleetOptions fleet;
  uint32_t agents;   // Connections.
  uint32_t hosts;    // Spread over the agents, as evenly as whole hosts allow.
  uint32_t rows;     // A message.
  uint32_t batches;  // Messages a host.
  double rate;       // Rows a second of each host; 0 is as fast as they are acknowledged.

  uint32_t FirstHost(uint32_t agent) const {
    return static_cast<uint32_t>(uint64_t{agent} * hosts / agents);
  }
  uint32_t HostsOf(uint32_t agent) const { return FirstHost(agent + 1) - FirstHost(agent); }
};

// The flags and their defaults, for ParseFlags().
std::map<std::string, std::string> LoadFlags();

LoadShape ReadLoadShape(const std::map<std::string, std::string>& flags);

}  // namespace tacho::bench
