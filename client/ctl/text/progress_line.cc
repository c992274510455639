#include "client/ctl/text/progress_line.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

constexpr absl::Duration kBarInterval = absl::Milliseconds(100);
constexpr absl::Duration kLineInterval = absl::Seconds(5);
constexpr size_t kDefaultWidth = 80;
constexpr size_t kLongestBar = 40;

}  // namespace

void ProgressLine::Show(absl::string_view what, uint64_t done, uint64_t total) {
  const absl::Time now = options_.now();
  if (first_ && !options_.is_terminal) next_ = now + kLineInterval;  // Short ones need no lines.
  first_ = false;
  if (now < next_) return;
  next_ = now + (options_.is_terminal ? kBarInterval : kLineInterval);
  const double share =
      total == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const std::string percent = absl::StrCat(static_cast<int>(share * 100), "%");
  if (!options_.is_terminal) {
    *options_.out << "tachoctl: " << Printable(what) << " " << percent << "\n" << std::flush;
    return;
  }
  const size_t width = options_.width == 0 ? kDefaultWidth : options_.width;
  const size_t taken = what.size() + percent.size() + 6;
  const size_t length = std::min(kLongestBar, width > taken ? width - taken : 0);
  const auto filled = static_cast<size_t>(share * static_cast<double>(length));
  *options_.out << "\r\x1b[K" << Printable(what) << " [" << std::string(filled, '#')
                << std::string(length - filled, ' ') << "] " << percent << std::flush;
  shown_ = true;
}

void ProgressLine::Say(absl::string_view line) {
  Clear();
  *options_.out << "tachoctl: " << Printable(line) << "\n" << std::flush;
}

void ProgressLine::Clear() {
  if (!shown_) return;
  *options_.out << "\r\x1b[K" << std::flush;
  shown_ = false;
}

}  // namespace tacho::ctl
