#include "tests/crash/wire.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace tacho::crash {

void ReportPipe::WriteAll(const char* bytes, size_t size) const {
  while (size > 0) {
    const ssize_t written = ::write(fd_, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) std::_Exit(3);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

void ReportPipe::Tell(Report::Kind kind, uint32_t agent, uint64_t number, bool altered) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Report report{kind, static_cast<uint8_t>(agent), altered, {}, number};
  WriteAll(reinterpret_cast<const char*>(&report), sizeof(report));
}

void ReportPipe::TellText(Report::Kind kind, const std::string& text) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Report report{kind, 0, 0, {}, text.size()};
  WriteAll(reinterpret_cast<const char*>(&report), sizeof(report));
  WriteAll(text.data(), text.size());
}

int ReportPipe::Fail(const std::string& why) const {
  TellText(Report::kFailed, why);
  return 1;
}

}  // namespace tacho::crash
