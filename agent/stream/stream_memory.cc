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
  for (const v1::Reject& reject : ack.rejects()) Add(reject, /*folded=*/false, now, say);
  for (const v1::Reject& reject : ack.folded()) Add(reject, /*folded=*/true, now, say);
}

void RefusalReport::Add(const v1::Reject& reject, bool folded, absl::Time now,
                        const std::function<void(const std::string&)>& say) {
  Sum& sum = sums_[{folded, reject.reason()}];
  sum.samples += reject.samples();
  sum.series += reject.series();
  if (now < sum.said + absl::Minutes(1)) return;
  std::string what = absl::StrCat(sum.samples, " samples");
  if (sum.series > 0) absl::StrAppend(&what, " and ", sum.series, " new series");
  say(absl::StrCat("the collector ", folded ? "added up in overflow series " : "refused ", what,
                   ": ", NameOf(reject.reason()), ", as of ", reject.example(), ": ",
                   reject.detail()));
  sum = {.said = now};
}

}  // namespace tacho::agent
