#include "server/promread/kept_jobs.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace tacho::server::promread {
namespace {

// The value that the matchers ask a label to have; null: they name none.
const std::string* NamedBy(const std::vector<storage::Matcher>& matchers, absl::string_view label) {
  const auto named = std::find_if(matchers.begin(), matchers.end(), [&](const auto& matcher) {
    return matcher.label() == label && matcher.op() == storage::Matcher::Op::kEqual;
  });
  return named == matchers.end() ? nullptr : &named->value();
}

}  // namespace

bool MayKeepJob(const cluster::Membership* membership, absl::string_view job) {
  return membership == nullptr || membership->IsSplit(job) || membership->Keeps(job);
}

bool KeepsRows(const cluster::Membership* membership, absl::string_view job,
               absl::string_view host) {
  return membership == nullptr || membership->Keeps(job, host);
}

std::vector<uint32_t> OtherShardsOf(const cluster::Membership& membership,
                                    const std::vector<ReadQuery>& queries) {
  std::set<uint32_t> shards;
  for (const ReadQuery& query : queries) {
    const std::string* const job = NamedBy(query.matchers, "job");
    const std::string* const host = NamedBy(query.matchers, "host");
    const bool of_one =
        job != nullptr && (!membership.IsSplit(*job) || (host != nullptr && !host->empty()));
    if (!of_one) {
      for (uint32_t shard = 0; shard < membership.shards(); ++shard) shards.insert(shard);
      break;
    }
    shards.insert(host == nullptr ? membership.ShardOf(*job) : membership.ShardOf(*job, *host));
  }
  shards.erase(membership.own());
  return {shards.begin(), shards.end()};
}

bool AsksOthers(const cluster::Membership* membership, const http::HttpRequest& request) {
  if (membership == nullptr || !membership->is_cluster()) return false;
  return std::none_of(request.query.begin(), request.query.end(), [](const auto& parameter) {
    return parameter.first == "members" && parameter.second == "own";
  });
}

std::string LeftOutByCluster(const cluster::Membership* membership,
                             const http::HttpRequest& request) {
  if (!AsksOthers(membership, request)) return "";
  return absl::StrCat("jobs of other collectors of the cluster are left out: this is ",
                      membership->NameOf(membership->own()), "; ask each of them");
}

}  // namespace tacho::server::promread
