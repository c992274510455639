// A digest of everything that one import sends, which identifies a repetition of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "tacho/v1/ingest.pb.h"

struct evp_md_ctx_st;

namespace tacho::importer {

// SHA-256 over layouts (at their first use) and messages. Used from one thread.
class StreamDigest {
 public:
  explicit StreamDigest(const std::string& job);
  StreamDigest(const StreamDigest&) = delete;
  StreamDigest& operator=(const StreamDigest&) = delete;
  ~StreamDigest();

  // `layout` may be null.
  void Add(const v1::Layout* layout, const v1::ClientMessage& message);

  // Call it after the last Add().
  std::string Finish();  // 32 bytes.

 private:
  void AddBytes(const google::protobuf::MessageLite& message);

  evp_md_ctx_st* const context_;
  absl::flat_hash_map<const v1::Layout*, uint64_t> layouts_;  // To their numbers.
  std::string bytes_;
};

// "import-" and 32 hexadecimal digits, from the first half of the digest.
std::string AgentIdOf(const std::string& digest);
// From the other half of the digest; never 0.
uint64_t GenerationOf(const std::string& digest);

}  // namespace tacho::importer
