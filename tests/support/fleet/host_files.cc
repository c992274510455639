#include "tests/support/fleet/host_files.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tacho::fleet {
namespace {

constexpr double kProcessors = 64;
constexpr double kTicks = 100;  // A second.
constexpr int64_t kTotalKb = int64_t{512} << 20;
constexpr int64_t kAvailableKb = kTotalKb * 6 / 10;

absl::Status Replace(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  {
    std::ofstream file(draft, std::ios::trunc);
    file << text;
    if (!file.flush()) return absl::UnavailableError(absl::StrCat("cannot write ", draft));
  }
  std::error_code error;
  std::filesystem::rename(draft, path, error);
  if (error) return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteHostFiles(const std::string& directory, double seconds, double busy_seconds) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return absl::UnavailableError(absl::StrCat(directory, ": ", error.message()));
  const double idle = kProcessors * seconds - busy_seconds;
  absl::Status status = Replace(
      directory + "/stat", absl::StrFormat("cpu  %.0f 0 0 %.0f 0 0 0 0 0 0\n",
                                           busy_seconds * kTicks, (idle > 0 ? idle : 0) * kTicks));
  if (status.ok()) {
    status = Replace(directory + "/meminfo",
                     absl::StrCat("MemTotal: ", kTotalKb, " kB\nMemFree: ", kAvailableKb / 2,
                                  " kB\nMemAvailable: ", kAvailableKb, " kB\n"));
  }
  if (status.ok()) {
    status = Replace(directory + "/uptime", absl::StrFormat("%.2f %.2f\n", seconds, idle));
  }
  return status;
}

}  // namespace tacho::fleet
