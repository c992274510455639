#include "server/cluster/asking/forward_reads.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "tacho/v1/member_reads.grpc.pb.h"

namespace tacho::server::cluster {
namespace {

using promread::MemberAnswer;
using promread::MemberAnswers;

template <typename Request, typename Response>
using Method = std::unique_ptr<grpc::ClientReader<Response>> (v1::MemberReads::Stub::*)(
    grpc::ClientContext*, const Request&);

// One call, read by a thread that may wait.
template <typename Request, typename Response>
class Answer final : public MemberAnswer<Response> {
 public:
  Answer(ForwardCalls* calls, uint32_t shard, const Asker& asker, Method<Request, Response> method,
         const Request& request)
      : name_(calls->membership().NameOf(shard)),
        call_(calls, shard, asker),
        stub_(v1::MemberReads::NewStub(call_.channel())),
        reader_((stub_.get()->*method)(call_.context(), request)) {}
  ~Answer() override {
    if (ended_) return;
    call_.Cancel();
    call_.Ended(reader_->Finish());
  }

  // Until the member has begun to work, or has refused.
  void AwaitBegin() { reader_->WaitForInitialMetadata(); }

  absl::StatusOr<bool> Next(Response* response) override {
    if (!ended_ && reader_->Read(response)) return true;
    if (!std::exchange(ended_, true)) {
      status_ = StatusOf(call_.Ended(reader_->Finish()));
    }
    if (status_.ok()) return false;
    return status_;
  }

 private:
  // A shard that has just moved, and a member of an older version, are no faults of the reader's.
  absl::Status StatusOf(const grpc::Status& ended) const {
    if (ended.error_code() == grpc::StatusCode::FAILED_PRECONDITION ||
        ended.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      return absl::UnavailableError(
          absl::StrCat("member ", name_, " does not answer this: ", ended.error_message()));
    }
    return errors::FromGrpcStatus(ended);
  }

  const std::string name_;
  ForwardCalls::Call call_;
  const std::unique_ptr<v1::MemberReads::Stub> stub_;
  const std::unique_ptr<grpc::ClientReader<Response>> reader_;
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Asker> ForwardReads::Admit(const promread::Reader& reader) const {
  const absl::Duration left = reader.deadline - MonotonicNow();
  return calls_.Admit(Asker{reader.shown, absl::ToChronoTime(absl::Now() + left)});
}

absl::StatusOr<MemberAnswers<v1::MemberReadResponse>> ForwardReads::Read(
    const promread::Reader& reader, const v1::MemberReadRequest& request,
    const std::vector<uint32_t>& shards) {
  TACHO_ASSIGN_OR_RETURN(const Asker asker, Admit(reader));
  MemberAnswers<v1::MemberReadResponse> answers;
  for (const uint32_t shard : shards) {
    v1::MemberReadRequest asked = request;
    asked.set_shard(shard);
    auto answer = std::make_unique<Answer<v1::MemberReadRequest, v1::MemberReadResponse>>(
        &calls_, shard, asker, &v1::MemberReads::Stub::Read, asked);
    answer->AwaitBegin();  // member_reads.proto says why.
    answers.push_back(std::move(answer));
  }
  return answers;
}

absl::StatusOr<MemberAnswers<v1::MemberListResponse>> ForwardReads::List(
    const promread::Reader& reader, const v1::MemberListRequest& request,
    const std::vector<uint32_t>& shards) {
  TACHO_ASSIGN_OR_RETURN(const Asker asker, Admit(reader));
  MemberAnswers<v1::MemberListResponse> answers;
  for (const uint32_t shard : shards) {
    v1::MemberListRequest asked = request;
    asked.set_shard(shard);
    answers.push_back(std::make_unique<Answer<v1::MemberListRequest, v1::MemberListResponse>>(
        &calls_, shard, asker, &v1::MemberReads::Stub::List, asked));
  }
  return answers;
}

}  // namespace tacho::server::cluster
