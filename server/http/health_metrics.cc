#include "server/http/health_metrics.h"

#include <filesystem>
#include <system_error>

#include "server/http/families.h"

namespace tacho::server::http {

std::vector<prometheus::MetricFamily> HealthFamilies(const Readiness* readiness,
                                                     const std::string& storage_path) {
  std::vector<prometheus::MetricFamily> families;
  if (readiness != nullptr) {
    families.push_back(GaugeFamily("tacho_ready", "1 while /readyz is 200, else 0.",
                                   readiness->WhyNotReady().empty() ? 1 : 0));
    families.push_back(GaugeFamily("tacho_storage_refusing",
                                   "1 while the disk refuses and nothing is stored, else 0.",
                                   readiness->IsHeld() ? 1 : 0));
  }
  if (storage_path.empty()) return families;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(storage_path, error);
  if (error) return families;
  families.push_back(GaugeFamily("tacho_storage_available_bytes",
                                 "Room that is left on the file system of storage.path, in bytes.",
                                 static_cast<double>(space.available)));
  return families;
}

}  // namespace tacho::server::http
