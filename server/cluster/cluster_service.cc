#include "server/cluster/cluster_service.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "proto/base/check.h"
#include "server/errors/grpc_status.h"
#include "server/metrics/metric_families.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::cluster {
namespace {

// What a member has said of itself, or why nothing is known of it.
v1::ClusterMember LineOf(const Membership& membership, uint32_t shard, const grpc::Status& status,
                         v1::GetMembersResponse* answer) {
  v1::ClusterMember line;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    line.set_error("it does not answer in time");
  } else if (!status.ok()) {
    line.set_error(status.error_message().empty() ? "it does not answer" : status.error_message());
  } else if (answer->members_size() != 1) {
    line.set_error("it is in no cluster: give it the same cluster.members");
  } else if (answer->own_shard() != shard) {
    line.set_error(absl::StrCat("it keeps shard ", answer->own_shard(),
                                ": give all members the same list, in the same order"));
  } else {
    line = std::move(*answer->mutable_members(0));
  }
  line.set_shard(shard);
  line.set_address(membership.address(shard));
  return line;
}

// One call, which asks all other members and ends when the last has answered.
class AskOthers final : public grpc::ServerUnaryReactor {
 public:
  AskOthers(const Membership* membership, v1::GetMembersResponse* response)
      : membership_(*membership), response_(response) {}

  // `token` may be empty.
  void Start(const std::string& token, absl::Duration patience) {
    const auto deadline = absl::ToChronoTime(absl::Now() + patience);
    for (uint32_t shard = 0; shard < membership_.shards(); ++shard) {
      if (shard == membership_.own()) continue;
      asked_.push_back(std::make_unique<Asked>());
      Asked& one = *asked_.back();
      one.shard = shard;
      one.stub = v1::Cluster::NewStub(membership_.channel(shard));
      one.context.set_deadline(deadline);
      if (!token.empty()) {
        one.context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
      }
      one.request.set_only_own(true);
    }
    left_ = asked_.size();
    TACHO_CHECK(left_ > 0);
    // gRPC learns of this after Start(), so that OnDone() does not come before.
    for (size_t i = 0; i < asked_.size(); ++i) {
      Asked* const one = asked_[i].get();
      one->stub->async()->GetMembers(&one->context, &one->request, &one->answer,
                                     [this, one](grpc::Status status) { Answered(one, status); });
    }
  }

 private:
  struct Asked {
    uint32_t shard = 0;
    std::unique_ptr<v1::Cluster::Stub> stub;
    grpc::ClientContext context;
    v1::GetMembersRequest request;
    v1::GetMembersResponse answer;
  };

  void Answered(Asked* one, const grpc::Status& status) {
    auto* const line = response_->mutable_members(static_cast<int>(one->shard));
    *line = LineOf(membership_, one->shard, status, &one->answer);
    if (--left_ > 0) return;
    Finish(grpc::Status::OK);
  }

  void OnCancel() override {
    for (const auto& one : asked_) one->context.TryCancel();
  }
  void OnDone() override { delete this; }

  const Membership& membership_;
  v1::GetMembersResponse* const response_;
  std::vector<std::unique_ptr<Asked>> asked_;
  std::atomic<size_t> left_ = 0;
};

}  // namespace

ClusterService::ClusterService(ClusterServiceOptions options) : options_(std::move(options)) {
  TACHO_CHECK(options_.membership != nullptr && options_.fill_own);
  if (options_.registry == nullptr) return;
  metrics::NewGauge(options_.registry, "tacho_cluster_members").Set(options_.membership->shards());
  metrics::NewGauge(options_.registry, "tacho_cluster_shard").Set(options_.membership->own());
}

void ClusterService::FillOwn(v1::ClusterMember* member) const {
  const Membership& membership = *options_.membership;
  member->set_shard(membership.own());
  member->set_address(membership.address(membership.own()));
  member->set_version(options_.version);
  options_.fill_own(member);
}

grpc::ServerUnaryReactor* ClusterService::GetMembers(grpc::CallbackServerContext* context,
                                                     const v1::GetMembersRequest* request,
                                                     v1::GetMembersResponse* response) {
  const Membership& membership = *options_.membership;
  auto caller = security::AdmitCall(options_.access, *context, security::Role::kRead);
  // A trainer that records without an agent has to find the owner of its job.
  if (absl::IsPermissionDenied(caller.status())) {
    caller = security::AdmitCall(options_.access, *context, security::Role::kWrite);
  }
  if (!caller.ok() || membership.address(membership.own()).empty()) {
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(caller.ok() ? grpc::Status::OK : errors::ToGrpcStatus(caller.status()));
    return reactor;
  }
  response->set_own_shard(membership.own());
  if (options_.standbys) {
    response->set_has_spares(true);
    for (std::string& address : options_.standbys()) {
      response->add_standbys(std::move(address));
    }
  }
  if (request->only_own() || !membership.is_cluster()) {
    FillOwn(response->add_members());
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  for (uint32_t shard = 0; shard < membership.shards(); ++shard) response->add_members();
  FillOwn(response->mutable_members(static_cast<int>(membership.own())));
  auto* const reactor = new AskOthers(&membership, response);
  reactor->Start(security::CredentialsOf(*context).token, options_.patience);
  return reactor;
}

}  // namespace tacho::server::cluster
