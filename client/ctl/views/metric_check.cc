#include "client/ctl/views/metric_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/text.h"
#include "proto/base/nearest.h"

namespace tacho::ctl {

bool ReportUnknownMetrics(const Invocation& invocation, QueryClient& client, const std::string& job,
                          const std::vector<std::string>& wanted) {
  const auto answer = client.GetJob(job);
  if (!answer.ok()) return false;
  std::vector<std::string> known;
  for (const v1::Metric& metric : answer->metrics()) known.push_back(metric.name());
  bool missing = false;
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    missing = true;
    *invocation.env.err << "tachoctl: "
                        << Printable(absl::StrCat("job '", job, "' has no metric '", name, "'",
                                                  DidYouMean(name, known)))
                        << '\n';
  }
  if (missing) {
    *invocation.env.err << "All metrics of the job: tachoctl metrics " << Printable(job) << '\n';
  }
  return missing;
}

}  // namespace tacho::ctl
