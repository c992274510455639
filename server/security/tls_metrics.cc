#include "server/security/tls_metrics.h"

#include "absl/time/time.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::security {
void TlsMetrics::Show(const TlsSource& tls) {
  if (registry_ == nullptr) return;
  // The registry returns the same gauge each time.
  metrics::NewGauge(registry_, "tacho_tls_certificate_expiry_timestamp_seconds")
      .Set(absl::ToDoubleSeconds(tls.Current()->not_after - absl::UnixEpoch()));
  metrics::NewGauge(registry_, "tacho_tls_certificate_reload_failed")
      .Set(tls.last_failed() ? 1 : 0);
}

}  // namespace tacho::server::security
