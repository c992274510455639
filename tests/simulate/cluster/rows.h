// What the simulated collectors store: rows with a position, and what is exported of them. A real
// store has more in its records, blocks and state files, and the protocol knows as little of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/codec/bytes.h"
#include "storage/shard/manifest.h"

namespace tacho::cluster {

inline constexpr size_t kAgents = 3;
// The highest sequence of each agent.
using Watermarks = std::array<uint64_t, kAgents>;

struct ModelRow {
  uint64_t position = 0;  // In the owner's journal; goes on with the next owner.
  uint64_t agent = 0;
  uint64_t sequence = 0;
  storage::LogStart segment;  // Where it is shipped; first 0: not yet. Not written.
};

inline std::string EncodeRow(const ModelRow& row) {
  std::string out;
  storage::PutVarint(row.position, &out);
  storage::PutVarint(row.agent, &out);
  storage::PutVarint(row.sequence, &out);
  return out;
}

inline ModelRow ReadRow(storage::ByteReader* in) {
  ModelRow row;
  row.position = in->Varint();
  row.agent = in->Varint() % kAgents;
  row.sequence = in->Varint();
  return row;
}

// The record of a sealed position, which must never be in a log: it has the agent's number that no
// agent has.
inline std::string EncodeSealedRecord(uint64_t position) {
  std::string out;
  storage::PutVarint(position, &out);
  storage::PutVarint(kAgents, &out);
  return out;
}
inline std::optional<uint64_t> SealedOfRecord(absl::string_view record) {
  storage::ByteReader in(record);
  const uint64_t position = in.Varint();
  return in.Varint() == kAgents ? std::optional(position) : std::nullopt;
}

inline std::string EncodeBlock(const std::vector<ModelRow>& rows) {
  std::string out;
  for (const ModelRow& row : rows) out += EncodeRow(row);
  return out;
}
inline std::vector<ModelRow> DecodeBlock(absl::string_view bytes) {
  std::vector<ModelRow> rows;
  storage::ByteReader in(bytes);
  while (in.ok() && !in.AtEnd()) rows.push_back(ReadRow(&in));
  return rows;
}

struct ModelState {
  uint64_t sealed = 0;  // Rows up to this position are in blocks.
  uint64_t next_position = 1;
  Watermarks watermarks{};  // Rows that were taken in.
};

inline std::string EncodeState(const ModelState& state) {
  std::string out;
  storage::PutVarint(state.sealed, &out);
  storage::PutVarint(state.next_position, &out);
  for (const uint64_t sequence : state.watermarks) storage::PutVarint(sequence, &out);
  return out;
}
inline ModelState DecodeState(absl::string_view bytes) {
  storage::ByteReader in(bytes);
  ModelState state;
  state.sealed = in.Varint();
  state.next_position = in.Varint();
  for (uint64_t& sequence : state.watermarks) sequence = in.Varint();
  return state;
}

}  // namespace tacho::cluster
