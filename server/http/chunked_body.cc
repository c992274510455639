#include "server/http/chunked_body.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace tacho::server::http {
namespace {

constexpr absl::string_view kLineEnd = "\r\n";
// Eight digits are 4 GiB; no body may have as much.
constexpr size_t kMaxSizeDigits = 8;

}  // namespace

ChunkedBody::State ChunkedBody::Read(size_t begin, std::string* in) {
  const size_t first = begin + bytes_;
  size_t at = first;
  for (bool more = state_ == State::kMore; more;) {
    switch (next_) {
      case Next::kSize:
        more = ReadSize(*in, &at);
        break;
      case Next::kData: {
        const size_t some = std::min(left_, in->size() - at);
        std::memmove(in->data() + begin + bytes_, in->data() + at, some);
        at += some;
        bytes_ += some;
        left_ -= some;
        more = left_ == 0;
        if (more) next_ = Next::kDataEnd;
        break;
      }
      case Next::kDataEnd: {
        const absl::string_view end = absl::string_view(*in).substr(at, kLineEnd.size());
        if (end != kLineEnd.substr(0, end.size())) more = End(State::kDamaged);
        if (end.size() < kLineEnd.size()) more = false;
        if (!more) break;
        at += kLineEnd.size();
        next_ = Next::kSize;
        break;
      }
      case Next::kTrailer:
        more = ReadTrailer(*in, &at);
        break;
    }
  }
  in->erase(begin + bytes_, at - (begin + bytes_));
  return state_;
}

bool ChunkedBody::End(State state) {
  state_ = state;
  return false;
}

bool ChunkedBody::ReadSize(absl::string_view in, size_t* at) {
  const absl::string_view rest = in.substr(*at, kMaxLineBytes);
  const size_t end = rest.find(kLineEnd);
  if (end == absl::string_view::npos) {
    return rest.size() == kMaxLineBytes && End(State::kDamaged);
  }
  const absl::string_view line = rest.substr(0, end);
  const absl::string_view digits = line.substr(0, line.find(';'));
  const auto is_digit = [](unsigned char c) { return absl::ascii_isxdigit(c); };
  const auto is_control = [](unsigned char c) { return absl::ascii_iscntrl(c); };
  uint64_t size = 0;
  if (digits.empty() || digits.size() > kMaxSizeDigits ||
      !std::all_of(digits.begin(), digits.end(), is_digit) ||
      std::any_of(line.begin(), line.end(), is_control) || !absl::SimpleHexAtoi(digits, &size)) {
    return End(State::kDamaged);
  }
  if (size > max_bytes_ - bytes_) return End(State::kTooLarge);
  *at += end + kLineEnd.size();
  left_ = size;
  next_ = size == 0 ? Next::kTrailer : Next::kData;
  return true;
}

bool ChunkedBody::ReadTrailer(absl::string_view in, size_t* at) {
  const size_t allowed = kMaxTrailerBytes - trailer_bytes_;
  const absl::string_view rest = in.substr(*at, allowed);
  const size_t end = rest.find(kLineEnd);
  if (end == absl::string_view::npos) return rest.size() == allowed && End(State::kDamaged);
  *at += end + kLineEnd.size();
  trailer_bytes_ += end + kLineEnd.size();
  return end > 0 || End(State::kDone);
}

}  // namespace tacho::server::http
