#include "server/security/refusal_log.h"

#include <utility>

#include "server/metrics/metric_families.h"

namespace tacho::server::security {

RefusalLog::RefusalLog(log::Log log, prometheus::Registry* registry) : log_(std::move(log)) {
  if (registry == nullptr) return;
  auto& family = metrics::CounterFamily(registry, "tacho_auth_refused_total");
  unauthenticated_ = &family.Add({{"code", "UNAUTHENTICATED"}});
  not_allowed_ = &family.Add({{"code", "PERMISSION_DENIED"}});
}

void RefusalLog::Refused(const absl::Status& why, absl::string_view peer) {
  prometheus::Counter* const counter =
      absl::IsUnauthenticated(why) ? unauthenticated_ : not_allowed_;
  if (counter != nullptr) counter->Increment();
  log_.Limited(
      log::Level::kWarn, "not let in",
      {{"peer", peer}, {"code", absl::StatusCodeToString(why.code())}, {"reason", why.message()}});
}

}  // namespace tacho::server::security
