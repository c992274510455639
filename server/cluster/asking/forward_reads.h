// Asks other members for what the tools of Prometheus want to know, with the reader's token.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/cluster/asking/forward_calls.h"
#include "server/promread/elsewhere.h"

namespace tacho::server::cluster {

// Thread-safe. Its destructor waits for the calls that are open.
class ForwardReads final : public promread::Elsewhere {
 public:
  explicit ForwardReads(ForwardOptions options) : calls_(std::move(options)) {}

  // As ForwardCalls::Drain().
  void Drain() { calls_.Drain(); }

  absl::StatusOr<promread::MemberAnswers<v1::MemberReadResponse>> Read(
      const promread::Reader& reader, const v1::MemberReadRequest& request,
      const std::vector<uint32_t>& shards) override;
  absl::StatusOr<promread::MemberAnswers<v1::MemberListResponse>> List(
      const promread::Reader& reader, const v1::MemberListRequest& request,
      const std::vector<uint32_t>& shards) override;

 private:
  absl::StatusOr<Asker> Admit(const promread::Reader& reader) const;

  ForwardCalls calls_;
};

}  // namespace tacho::server::cluster
