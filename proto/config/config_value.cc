#include "proto/config/config_value.h"

#include <arpa/inet.h>

#include <iterator>
#include <limits>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "proto/base/status_macros.h"
#include "re2/re2.h"

namespace tacho::config {
namespace {

// A DNS name is at most this long (RFC 1035).
constexpr size_t kMaxHostLength = 253;

struct Unit {
  absl::string_view name;
  uint64_t scale;
};

// Larger first: a duration names its units in this order.
constexpr Unit kTimeUnits[] = {
    {"d", 86'400'000'000'000},
    {"h", 3'600'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
};

constexpr Unit kByteUnits[] = {
    {"TiB", uint64_t{1} << 40},
    {"GiB", 1 << 30},
    {"MiB", 1 << 20},
    {"KiB", 1 << 10},
    {"TB", 1'000'000'000'000},
    {"GB", 1'000'000'000},
    {"MB", 1'000'000},
    {"KB", 1'000},
    {"", 1},
};

absl::Status NotDuration(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a duration; expected one such as 500ms, 90s, 1h30m, 30d"));
}

absl::Status NotBytes(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a number of bytes; expected one such as 4096, 64MiB, 2GB"));
}

absl::string_view TakeWhile(absl::string_view* text, bool (*is_wanted)(unsigned char)) {
  size_t length = 0;
  while (length < text->size() && is_wanted(static_cast<unsigned char>((*text)[length]))) ++length;
  const absl::string_view taken = text->substr(0, length);
  text->remove_prefix(length);
  return taken;
}

// A decimal number as digits without a point: value = digits / 10^decimals.
struct Decimal {
  absl::uint128 digits = 0;
  int decimals = 0;
};

// Takes "12" or "1.5" from the front of `*text`; nullopt if there is none or it has more digits
// than any value needs (10^19 times the largest scale still fits 128 bits).
std::optional<Decimal> TakeDecimal(absl::string_view* text) {
  constexpr size_t kMaxDigits = 20;
  const absl::string_view whole = TakeWhile(text, absl::ascii_isdigit);
  absl::string_view fraction;
  if (!whole.empty() && absl::ConsumePrefix(text, ".")) {
    fraction = TakeWhile(text, absl::ascii_isdigit);
    if (fraction.empty()) return std::nullopt;
  }
  if (whole.empty() || whole.size() + fraction.size() > kMaxDigits) return std::nullopt;
  Decimal number;
  for (const absl::string_view part : {whole, fraction}) {
    for (const char digit : part) number.digits = number.digits * 10 + (digit - '0');
  }
  number.decimals = static_cast<int>(fraction.size());
  return number;
}

// number × scale; nullopt if that is no whole number.
std::optional<absl::uint128> Scaled(const Decimal& number, uint64_t scale) {
  absl::uint128 divisor = 1;
  for (int i = 0; i < number.decimals; ++i) divisor *= 10;
  const absl::uint128 product = number.digits * scale;
  if (product % divisor != 0) return std::nullopt;
  return product / divisor;
}

const Unit* FindUnit(absl::Span<const Unit> units, absl::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

absl::Status CheckPort(absl::string_view port) {
  uint32_t number = 0;
  const bool is_number = !port.empty() &&
                         absl::ascii_isdigit(static_cast<unsigned char>(port.front())) &&
                         absl::SimpleAtoi(port, &number);
  if (is_number && number <= 65535) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("port '", port, "' is not a number from 0 to 65535"));
}

absl::Status CheckHost(absl::string_view host) {
  const bool is_name_like = [host] {
    for (const char c : host) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') {
        return false;
      }
    }
    return !host.empty() && host.size() <= kMaxHostLength;
  }();
  if (is_name_like) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", host, "' is not a host name or IP address; expected host:port"));
}

}  // namespace

absl::StatusOr<int64_t> ParseDuration(absl::string_view text) {
  absl::string_view rest = text;
  const bool negative = absl::ConsumePrefix(&rest, "-");
  if (rest == "0") return 0;
  absl::uint128 total = 0;
  const Unit* last = nullptr;
  do {
    const std::optional<Decimal> number = TakeDecimal(&rest);
    const Unit* unit = FindUnit(kTimeUnits, TakeWhile(&rest, absl::ascii_isalpha));
    if (!number || unit == nullptr) return NotDuration(text);
    if (last != nullptr && unit->scale >= last->scale) return NotDuration(text);
    const std::optional<absl::uint128> part = Scaled(*number, unit->scale);
    if (!part) return NotDuration(text);
    total += *part;
    last = unit;
  } while (!rest.empty());
  if (total > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is too long; expected a duration below 292 years"));
  }
  const auto magnitude = static_cast<int64_t>(absl::Uint128Low64(total));
  return negative ? -magnitude : magnitude;
}

std::string FormatDuration(int64_t nanoseconds) {
  if (nanoseconds == 0) return "0s";
  std::string text = nanoseconds < 0 ? "-" : "";
  uint64_t rest =
      nanoseconds < 0 ? -static_cast<uint64_t>(nanoseconds) : static_cast<uint64_t>(nanoseconds);
  for (const Unit& unit : kTimeUnits) {
    if (rest / unit.scale == 0) continue;
    absl::StrAppend(&text, rest / unit.scale, unit.name);
    rest %= unit.scale;
  }
  return text;
}

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  absl::string_view rest = text;
  const std::optional<Decimal> number = TakeDecimal(&rest);
  const Unit* unit = FindUnit(kByteUnits, rest);
  if (!number || unit == nullptr) return NotBytes(text);
  const std::optional<absl::uint128> bytes = Scaled(*number, unit->scale);
  if (!bytes) return NotBytes(text);
  if (*bytes > std::numeric_limits<uint64_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is more than 2^64 bytes"));
  }
  return absl::Uint128Low64(*bytes);
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes == 0) return "0";
  const Unit* best = nullptr;
  for (const Unit& unit : kByteUnits) {
    if (bytes % unit.scale != 0) continue;
    if (best == nullptr || unit.scale > best->scale) best = &unit;
  }
  return absl::StrCat(bytes / best->scale, best->name);
}

absl::Status CheckAddress(absl::string_view text) {
  absl::string_view host = text;
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' has no port; expected host:port or [v6]:port"));
  }
  host = text.substr(0, colon);
  TACHO_RETURN_IF_ERROR(CheckPort(text.substr(colon + 1)));
  if (!absl::StrContains(host, ':')) return CheckHost(host);
  if (!absl::ConsumePrefix(&host, "[") || !absl::ConsumeSuffix(&host, "]")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': an IPv6 address goes in brackets; expected [v6]:port"));
  }
  in6_addr address;
  if (inet_pton(AF_INET6, std::string(host).c_str(), &address) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", host, "' is not an IPv6 address"));
}

absl::Status CheckRegex(absl::string_view text) {
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 regex(re2::StringPiece(text.data(), text.size()), options);
  if (regex.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a regular expression of RE2: ", regex.error()));
}

}  // namespace tacho::config
