#include "server/cluster/asking/forward_reads.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/cluster/asking/member_part.h"
#include "server/errors/grpc_status.h"
#include "tacho/v1/member_reads.grpc.pb.h"

namespace tacho::server::cluster {
namespace {

using promread::MemberAnswer;
using promread::MemberAnswers;

template <typename Request, typename Response>
class Answer final : public MemberAnswer<Response> {
 public:
  using Stream = MemberStream<v1::MemberReads, Request, Response>;

  // Begins the call.
  Answer(ForwardCalls* calls, uint32_t shard, const Asker& asker, typename Stream::Method method,
         const Request& request)
      : name_(calls->membership().NameOf(shard)), stream_(calls, shard, asker, method, request) {}

  void AwaitHeaders() { stream_.AwaitHeaders(); }

  absl::StatusOr<bool> Next(Response* response) override {
    if (stream_.Read(response)) return true;
    const grpc::Status& ended = stream_.status();
    if (ended.ok()) return false;
    // A shard that has just moved, and a member of an older version, are no faults of the reader's.
    if (ended.error_code() == grpc::StatusCode::FAILED_PRECONDITION ||
        ended.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      return absl::UnavailableError(
          absl::StrCat("member ", name_, " does not answer this: ", ended.error_message()));
    }
    return errors::FromGrpcStatus(ended);
  }

 private:
  const std::string name_;
  Stream stream_;
};

// Asks each of the shards. With `in_turn` the next call begins when the member before has begun to
// work: member_reads.proto says why.
template <typename Request, typename Response>
MemberAnswers<Response> AskEach(ForwardCalls* calls, const Asker& asker,
                                typename Answer<Request, Response>::Stream::Method method,
                                Request request, const std::vector<uint32_t>& shards,
                                bool in_turn) {
  MemberAnswers<Response> answers;
  for (const uint32_t shard : shards) {
    request.set_shard(shard);
    auto answer = std::make_unique<Answer<Request, Response>>(calls, shard, asker, method, request);
    if (in_turn) answer->AwaitHeaders();
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace

absl::StatusOr<Asker> ForwardReads::Admit(const promread::Reader& reader) const {
  const absl::Duration left = reader.deadline - MonotonicNow();
  return calls_.Admit(Asker{reader.shown, absl::ToChronoTime(absl::Now() + left)});
}

absl::StatusOr<MemberAnswers<v1::MemberReadResponse>> ForwardReads::Read(
    const promread::Reader& reader, const v1::MemberReadRequest& request,
    const std::vector<uint32_t>& shards) {
  TACHO_ASSIGN_OR_RETURN(const Asker asker, Admit(reader));
  return AskEach<v1::MemberReadRequest, v1::MemberReadResponse>(
      &calls_, asker, &v1::MemberReads::Stub::Read, request, shards, /*in_turn=*/true);
}

absl::StatusOr<MemberAnswers<v1::MemberListResponse>> ForwardReads::List(
    const promread::Reader& reader, const v1::MemberListRequest& request,
    const std::vector<uint32_t>& shards) {
  TACHO_ASSIGN_OR_RETURN(const Asker asker, Admit(reader));
  return AskEach<v1::MemberListRequest, v1::MemberListResponse>(
      &calls_, asker, &v1::MemberReads::Stub::List, request, shards, /*in_turn=*/false);
}

}  // namespace tacho::server::cluster
