// tacho.v1.Cluster: who keeps which shard, and how each of them is. Asks the other members at once,
// with what the caller has shown.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "prometheus/registry.h"
#include "server/cluster/membership.h"
#include "server/security/access_control.h"
#include "tacho/v1/cluster.grpc.pb.h"

namespace tacho::server::cluster {

struct ClusterServiceOptions {
  const Membership* membership = nullptr;           // Not owned; must outlive the service.
  const security::AccessControl* access = nullptr;  // Not owned; null lets everybody do everything.
  prometheus::Registry* registry = nullptr;         // Not owned; null: nothing is shown.
  std::string version;
  // Fills in what this collector knows of itself, but for shard, address and version. Called from
  // any thread.
  std::function<void(v1::ClusterMember*)> fill_own;
  // Addresses of the collectors that wait for a shard. Null: the cluster has no spares. As above.
  std::function<std::vector<std::string>()> standbys;
  absl::Duration patience = absl::Seconds(2);  // With each of the others.
};

// Thread-safe. A call needs the role read or write; so it does at the members that are asked, and
// what they refuse is said in their line.
class ClusterService final : public v1::Cluster::CallbackService {
 public:
  explicit ClusterService(ClusterServiceOptions options);

  grpc::ServerUnaryReactor* GetMembers(grpc::CallbackServerContext* context,
                                       const v1::GetMembersRequest* request,
                                       v1::GetMembersResponse* response) override;

 private:
  void FillOwn(v1::ClusterMember* member) const;

  const ClusterServiceOptions options_;
};

}  // namespace tacho::server::cluster
