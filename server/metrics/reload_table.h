// The families of configuration, access and certificates.
#pragma once

#include "server/metrics/metric_info.h"

namespace tacho::server::metrics {

inline constexpr MetricInfo kReloadMetrics[] = {
    {"tacho_config_last_reload_successful", "gauge", "1", "",
     "1 if the configuration in force is the newest that was asked for, 0 if the last reload "
     "was refused: alert on it"},
    {"tacho_config_last_reload_success_timestamp_seconds", "gauge", "s", "",
     "When the configuration in force was read, since the Unix epoch"},
    {"tacho_auth_refused_total", "counter", "calls", "code",
     "gRPC calls and HTTP requests that were not let in: `UNAUTHENTICATED` (nothing was shown, "
     "or it is unknown or expired), `PERMISSION_DENIED` (the role is lacking)"},
    {"tacho_tls_certificate_expiry_timestamp_seconds", "gauge", "s", "",
     "When the certificate that new connections see expires, since the Unix epoch",
     "Only with TLS"},
    {"tacho_tls_certificate_reload_failed", "gauge", "1", "",
     "1 while the files of `listen.tls` are not right and the old certificate stays",
     "Only with TLS"},
    {"tacho_config_reloads_total", "counter", "reloads", "result",
     "Reloads asked for: `success`, `failure`"},
};

}  // namespace tacho::server::metrics
