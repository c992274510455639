#include "agent/sources/host/host_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace tacho::agent {

std::vector<absl::string_view> Lines(absl::string_view text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

std::vector<absl::string_view> Words(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
}

std::optional<double> Number(absl::string_view word) {
  double value = 0;
  if (!absl::SimpleAtod(word, &value) || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

bool ParseKeyed(absl::string_view text, const KeyedMetrics& metrics, Sample* out) {
  bool understood = false;
  for (absl::string_view line : Lines(text)) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() < 2) continue;
    for (const KeyedMetric* keyed = metrics.begin; keyed != metrics.end; ++keyed) {
      if (keyed->key != words[0]) continue;
      const std::optional<double> value = Number(words[1]);
      if (!value.has_value()) continue;
      out->Add(keyed->metric, *value * keyed->factor);
      understood = true;
    }
  }
  return understood;
}

namespace {

constexpr size_t kMaxFileBytes = size_t{4} * 1024 * 1024;

}  // namespace

absl::StatusOr<std::string> ReadProcFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::NotFoundError(std::generic_category().message(errno));
  std::string text;
  char buffer[16 * 1024];
  ssize_t got = 0;
  do {
    got = ::read(fd, buffer, sizeof(buffer));
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  } while (text.size() < kMaxFileBytes && (got > 0 || (got < 0 && errno == EINTR)));
  const int error = errno;
  ::close(fd);
  if (got < 0) return absl::UnavailableError(std::generic_category().message(error));
  return text;
}

}  // namespace tacho::agent
