// What /metrics says of the collector's certificate.
#pragma once

#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "server/security/tls_source.h"

namespace tacho::server::security {

// Thread-safe. Nothing is shown before the first Show(): without TLS there is nothing to say.
class TlsMetrics {
 public:
  // `registry` is not owned and must outlive this; null: nothing is shown.
  explicit TlsMetrics(prometheus::Registry* registry) : registry_(registry) {}

  void Show(const TlsSource& tls);

 private:
  prometheus::Registry* const registry_;
};

}  // namespace tacho::server::security
