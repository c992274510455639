#include "agent/stream/stream_memory.h"

#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

std::string NameOf(v1::Reject::Reason reason) {
  const std::string& name = v1::Reject::Reason_Name(reason);
  return name.empty() ? absl::StrCat("reason ", static_cast<int>(reason)) : name;
}

}  // namespace

void RefusalReport::Add(const v1::Ack& ack, absl::Time now,
                        const std::function<void(const std::string&)>& say) {
  for (const v1::Reject& reject : ack.rejects()) Add(reject, /*folded=*/false);
  for (const v1::Reject& reject : ack.folded()) Add(reject, /*folded=*/true);
  for (auto& [what, sum] : sums_) {
    if (sum.samples + sum.series == 0 || now < sum.said + absl::Minutes(1)) continue;
    say(LineOf(what.first, sum));
    sum.samples = sum.series = 0;
    sum.said = now;
  }
}

void RefusalReport::Add(const v1::Reject& reject, bool folded) {
  Sum& sum = sums_[{folded, reject.reason()}];
  sum.samples += reject.samples();
  sum.series += reject.series();
  sum.all_samples += reject.samples();
  sum.last = reject;
}

std::string RefusalReport::LineOf(bool folded, const Sum& sum) {
  std::string what = absl::StrCat(sum.samples, " samples");
  if (sum.series > 0) absl::StrAppend(&what, " and ", sum.series, " new series");
  if (sum.all_samples > sum.samples) {
    absl::StrAppend(&what, " (", sum.all_samples, " samples since the start)");
  }
  return absl::StrCat("the collector ", folded ? "added up in overflow series " : "refused ", what,
                      ": ", NameOf(sum.last.reason()), ", as of ", sum.last.example(), ": ",
                      sum.last.detail());
}

}  // namespace tacho::agent
