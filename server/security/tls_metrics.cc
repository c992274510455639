#include "server/security/tls_metrics.h"

#include "absl/time/time.h"

namespace tacho::server::security {
namespace {

// The registry returns the same gauge for the same name.
void Set(prometheus::Registry* registry, const char* name, const char* help, double value) {
  prometheus::BuildGauge().Name(name).Help(help).Register(*registry).Add({}).Set(value);
}

}  // namespace

void TlsMetrics::Show(const TlsSource& tls) {
  if (registry_ == nullptr) return;
  Set(registry_, "tacho_tls_certificate_expiry_timestamp_seconds",
      "When the certificate that new connections see expires.",
      absl::ToDoubleSeconds(tls.Current()->not_after - absl::UnixEpoch()));
  Set(registry_, "tacho_tls_certificate_reload_failed",
      "1 while the files of listen.tls are not right and the old certificate stays, else 0.",
      tls.last_failed() ? 1 : 0);
}

}  // namespace tacho::server::security
