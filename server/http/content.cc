// Reads Accept headers, and packs bodies. Gzip output is made of independent pieces in one stream,
// so that several cores can pack a large page while its scrape waits.
#include "server/http/content.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/aggregate/parallel.h"

namespace tacho::server::http {
namespace {

// One part of a header: "text/plain;version=0.0.4;q=0.5".
struct Range {
  std::string name;     // Lower case.
  std::string version;  // Empty if there is none.
  double q = 1;
};

// A q that is not a number from 0 to 1 counts as 1: a client that names a format wants it.
double ParseQ(absl::string_view text) {
  double q = 1;
  if (!absl::SimpleAtod(text, &q) || !(q >= 0 && q <= 1)) return 1;
  return q;
}

std::vector<Range> ParseRanges(absl::string_view header) {
  std::vector<Range> ranges;
  for (const absl::string_view part : absl::StrSplit(header, ',')) {
    const std::vector<absl::string_view> pieces = absl::StrSplit(part, ';');
    Range range;
    range.name = absl::AsciiStrToLower(absl::StripAsciiWhitespace(pieces[0]));
    if (range.name.empty()) continue;
    for (size_t i = 1; i < pieces.size(); ++i) {
      const std::pair<absl::string_view, absl::string_view> parameter =
          absl::StrSplit(pieces[i], absl::MaxSplits('=', 1));
      const absl::string_view key = absl::StripAsciiWhitespace(parameter.first);
      absl::string_view value = absl::StripAsciiWhitespace(parameter.second);
      absl::ConsumePrefix(&value, "\"");
      absl::ConsumeSuffix(&value, "\"");
      if (absl::EqualsIgnoreCase(key, "q")) range.q = ParseQ(value);
      if (absl::EqualsIgnoreCase(key, "version")) range.version = std::string(value);
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

// How closely a range names text/plain 0.0.4; 0 if it does not.
int Closeness(const Range& range) {
  if (!range.version.empty() && range.version != "0.0.4") return 0;
  if (range.name == "text/plain") return range.version.empty() ? 3 : 4;
  if (range.name == "text/*") return 2;
  return range.name == "*/*" ? 1 : 0;
}

// Smaller pieces are not worth a thread, and each begins without what the one before has seen.
constexpr size_t kMinPieceBytes = 256 << 10;

const Bytef* BytesOf(absl::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

// Appends to *packed. A piece that is not the last ends at a byte, so that another may follow.
bool Deflate(absl::string_view bytes, bool last, std::string* packed) {
  constexpr int kRawWindow = -MAX_WBITS;  // Negative: neither gzip's header nor zlib's.
  constexpr int kMemoryLevel = 8;         // zlib's default.
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kRawWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return false;
  }
  // zlib does not write through next_in; its type lacks the const.
  stream.next_in = const_cast<Bytef*>(BytesOf(bytes));
  stream.avail_in = static_cast<uInt>(bytes.size());
  int result = Z_OK;
  do {
    const size_t begin = packed->size();
    const size_t room = stream.avail_in / 8 + 4096;  // Text shrinks to less, most often.
    packed->resize(begin + room);
    stream.next_out = reinterpret_cast<Bytef*>(packed->data() + begin);
    stream.avail_out = static_cast<uInt>(room);
    result = deflate(&stream, last ? Z_FINISH : Z_SYNC_FLUSH);
    packed->resize(begin + room - stream.avail_out);
  } while (stream.avail_out == 0 && (result == Z_OK || result == Z_BUF_ERROR));
  deflateEnd(&stream);
  return result == (last ? Z_STREAM_END : Z_OK);
}

void AppendLittleEndian(uint32_t number, std::string* out) {
  for (int shift = 0; shift < 32; shift += 8) {
    out->push_back(static_cast<char>(number >> shift & 0xff));
  }
}

}  // namespace

bool AcceptsPrometheusText(absl::string_view accept) {
  const std::vector<Range> ranges = ParseRanges(accept);
  if (ranges.empty()) return true;
  int closest = 0;
  double q = 0;
  for (const Range& range : ranges) {
    const int closeness = Closeness(range);
    if (closeness == 0 || closeness < closest) continue;
    q = closeness == closest ? std::max(q, range.q) : range.q;
    closest = closeness;
  }
  return q > 0;
}

bool AcceptsGzip(absl::string_view accept_encoding) {
  double gzip = -1;
  double any = -1;
  for (const Range& range : ParseRanges(accept_encoding)) {
    if (range.name == "gzip" || range.name == "x-gzip") gzip = range.q;
    if (range.name == "*") any = range.q;
  }
  return gzip >= 0 ? gzip > 0 : any > 0;
}

std::optional<std::string> Gzip(absl::string_view bytes) {
  if (bytes.size() > std::numeric_limits<uInt>::max()) return std::nullopt;
  struct Piece {
    absl::string_view bytes;
    std::string packed;
    uLong crc = 0;
    bool ok = false;
  };
  const size_t threads = aggregate::ScrapeThreads();
  std::vector<Piece> pieces(std::clamp<size_t>(bytes.size() / kMinPieceBytes, 1, 2 * threads));
  aggregate::ParallelFor(pieces.size(), threads, [&](size_t i) {
    Piece& piece = pieces[i];
    const size_t begin = bytes.size() * i / pieces.size();
    const size_t end = bytes.size() * (i + 1) / pieces.size();
    piece.bytes = bytes.substr(begin, end - begin);
    piece.crc = crc32(0, BytesOf(piece.bytes), static_cast<uInt>(piece.bytes.size()));
    piece.ok = Deflate(piece.bytes, i + 1 == pieces.size(), &piece.packed);
  });
  // RFC 1952: magic, deflate, no flags, no time, fastest, Unix; then the CRC and the length.
  std::string packed("\x1f\x8b\x08\0\0\0\0\0\x04\x03", 10);
  uLong crc = crc32(0, nullptr, 0);
  for (const Piece& piece : pieces) {
    if (!piece.ok) return std::nullopt;
    packed += piece.packed;
    crc = crc32_combine(crc, piece.crc, static_cast<z_off_t>(piece.bytes.size()));
  }
  AppendLittleEndian(static_cast<uint32_t>(crc), &packed);
  AppendLittleEndian(static_cast<uint32_t>(bytes.size()), &packed);
  return packed;
}

}  // namespace tacho::server::http
