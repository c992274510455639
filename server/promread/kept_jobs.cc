#include "server/promread/kept_jobs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"

namespace tacho::server::promread {
namespace {

constexpr char kAskAll[] =
    "name each member in the reader's configuration, with ?members=own behind its address";

bool MayLeaveOut(const cluster::Membership* membership, const http::HttpRequest& request) {
  if (membership == nullptr || !membership->is_cluster()) return false;
  return std::none_of(request.query.begin(), request.query.end(), [](const auto& parameter) {
    return parameter.first == "members" && parameter.second == "own";
  });
}

}  // namespace

absl::Status CheckKept(const cluster::Membership* membership, const http::HttpRequest& request,
                       const std::vector<ReadQuery>& queries) {
  if (!MayLeaveOut(membership, request)) return absl::OkStatus();
  for (const ReadQuery& query : queries) {
    const auto job =
        std::find_if(query.matchers.begin(), query.matchers.end(), [](const auto& matcher) {
          return matcher.label() == "job" && matcher.op() == storage::Matcher::Op::kEqual;
        });
    if (job == query.matchers.end()) {
      return errors::ErrorOf(
          errors::Failure::kMisdirected,
          absl::StrCat("a query without job=\"NAME\" may be about jobs of each collector of the "
                       "cluster, and ",
                       membership->NameOf(membership->own()), " reads only its own: ", kAskAll));
    }
    if (membership->IsSplit(job->value())) {
      return errors::ErrorOf(errors::Failure::kMisdirected,
                             absl::StrCat("the hosts of job ", job->value(),
                                          " are divided over all members: ", kAskAll));
    }
    const uint32_t shard = membership->ShardOf(job->value());
    if (shard == membership->own()) continue;
    return errors::ErrorOf(
        errors::Failure::kMisdirected,
        absl::StrCat("job ", job->value(), " is kept by ", membership->NameOf(shard),
                     ": read it there, or ", kAskAll));
  }
  return absl::OkStatus();
}

std::string LeftOutByCluster(const cluster::Membership* membership,
                             const http::HttpRequest& request) {
  if (!MayLeaveOut(membership, request)) return "";
  return absl::StrCat("jobs of other collectors of the cluster are left out: this is ",
                      membership->NameOf(membership->own()), "; ", kAskAll);
}

}  // namespace tacho::server::promread
