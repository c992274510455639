// One answer from those of all members, such as one collector with all jobs would give.
//
// A member's answer counts only for jobs that it keeps: it may know names of others, whose rows it
// refused.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"
#include "server/cluster/asking/forward_reactors.h"
#include "server/cluster/membership.h"
#include "tacho/v1/conditions.pb.h"
#include "tacho/v1/query.pb.h"
#include "tacho/v1/view.pb.h"

namespace tacho::server::cluster {

// Whether a member's word about a condition counts. Of a split job each member judges what it has,
// copies of other parts too: a condition counts if its worst culprit is a host of the member's
// part. Of one without a host the member of the job itself speaks, and all if it is true.
bool SpeaksFor(const Membership& membership, uint32_t shard, const v1::Condition& condition);

// Each function returns the first status of the answers that is not OK, and changes `to` only if
// there is none.

// What members are asked: with a page token, so that all of them take the same jobs for active.
v1::ListJobsRequest JobsAsked(v1::ListJobsRequest request, absl::Time now);
// `asked` is what JobsAsked() gave. A page may have fewer jobs than asked for, and still be
// followed by another.
grpc::Status MergeJobs(const Membership& membership, const v1::ListJobsRequest& asked,
                       std::vector<Answered<v1::ListJobsResponse>>* answers,
                       v1::ListJobsResponse* to);

grpc::Status MergeConditions(const Membership& membership,
                             std::vector<Answered<v1::ConditionsResponse>>* answers,
                             v1::ConditionsResponse* to);

// Jobs are counted where they are kept, and split ones at all members: their series, copies too,
// are added up, and of a label's values the largest number counts. Totals, in which copies of host
// rows count as what they are, and the limits of each member for them, are added up.
grpc::Status MergeCardinality(const Membership& membership, const v1::CardinalityRequest& request,
                              std::vector<Answered<v1::CardinalityResponse>>* answers,
                              v1::CardinalityResponse* to);

// What members are asked: everything, because their revisions have nothing to do with each other,
// and hosts, because the member of the job "hosts" does not know where the jobs of others run.
v1::FleetRequest FleetAsked(v1::FleetRequest request);
// The answer is always complete. A host is idle if no member has a job on it.
grpc::Status MergeFleet(const Membership& membership, const v1::FleetRequest& request,
                        std::vector<Answered<v1::FleetResponse>>* answers, v1::FleetResponse* to);

}  // namespace tacho::server::cluster
