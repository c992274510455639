#include "server/cost/price_list.h"

#include <cmath>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tacho::server::cost {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;
constexpr char kAny[] = "any";

bool Fits(absl::string_view kind, absl::string_view device_kind) {
  if (absl::StartsWithIgnoreCase(kind, "tpu")) return absl::EqualsIgnoreCase(kind, device_kind);
  return absl::StrContains(absl::AsciiStrToLower(device_kind), absl::AsciiStrToLower(kind));
}

absl::Status Wrong(absl::string_view key, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("cost.", key, ": ", problem));
}

// An empty one has its default.
absl::Status CheckCurrency(const std::string& currency) {
  if (currency.empty()) return absl::OkStatus();
  bool good = currency.size() == 3;
  for (const char c : currency) good = good && absl::ascii_isupper(static_cast<unsigned char>(c));
  if (good) return absl::OkStatus();
  return Wrong("currency", absl::StrCat("is \"", currency,
                                        "\": write three capital letters, such as USD or EUR"));
}

absl::Status CheckChips(const config::v1::Cost& config) {
  std::set<std::pair<std::string, std::string>> seen;
  for (int i = 0; i < config.chips_size(); ++i) {
    const auto& chip = config.chips(i);
    const std::string key = absl::StrCat("chips[", i, "]");
    if (!std::isfinite(chip.per_hour()) || chip.per_hour() <= 0) {
      return Wrong(absl::StrCat(key, ".per_hour"),
                   absl::StrCat("is ", chip.per_hour(), " for ", chip.kind(),
                                ": write what one chip costs for an hour, or leave the entry out"));
    }
    if (!seen.emplace(absl::AsciiStrToLower(chip.kind()), chip.capacity_type()).second) {
      return Wrong(absl::StrCat(key, ".kind"),
                   absl::StrCat("names ", chip.kind(), " with capacity_type ", chip.capacity_type(),
                                " a second time: keep one of the two entries"));
    }
  }
  return absl::OkStatus();
}

// 0, which a file cannot have, is the default.
double OverheadOf(const config::v1::Cost::Energy& energy) {
  return energy.overhead_factor() == 0 ? 1 : energy.overhead_factor();
}

absl::Status CheckEnergy(const config::v1::Cost::Energy& energy) {
  if (!std::isfinite(energy.per_kwh()) || energy.per_kwh() < 0) {
    return Wrong("energy.per_kwh", "is no price: write what a kilowatt hour costs, or 0 for none");
  }
  if (!std::isfinite(OverheadOf(energy)) || OverheadOf(energy) < 1) {
    return Wrong("energy.overhead_factor",
                 "is below 1: write the site's PUE, which is at least 1, such as 1.2");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PriceList> PriceList::Create(const config::v1::Cost& config) {
  if (auto s = CheckChips(config); !s.ok()) return s;
  if (auto s = CheckEnergy(config.energy()); !s.ok()) return s;
  if (auto s = CheckCurrency(config.currency()); !s.ok()) return s;
  PriceList list;
  for (const auto& chip : config.chips()) {
    list.chips_.push_back({chip.kind(), chip.capacity_type(), chip.per_hour()});
  }
  if (config.energy().per_kwh() > 0) {
    list.per_joule_ = config.energy().per_kwh() * OverheadOf(config.energy()) / kJoulesPerKwh;
  }
  if (!list.empty()) list.currency_ = config.currency().empty() ? "USD" : config.currency();
  return list;
}

const ChipPrice* PriceList::Find(absl::string_view device_kind,
                                 absl::string_view capacity_type) const {
  size_t longest = 0;
  for (const ChipPrice& one : chips_) {
    if (Fits(one.kind, device_kind)) longest = std::max(longest, one.kind.size());
  }
  if (longest == 0) return nullptr;
  const ChipPrice* any = nullptr;
  const ChipPrice* first = nullptr;
  for (const ChipPrice& one : chips_) {
    if (one.kind.size() != longest || !Fits(one.kind, device_kind)) continue;
    if (one.capacity_type == capacity_type) return &one;
    if (one.capacity_type == kAny) any = &one;
    if (first == nullptr) first = &one;
  }
  if (any != nullptr) return any;
  return capacity_type.empty() ? first : nullptr;
}

std::string CapacityTypeOf(absl::string_view word) {
  std::string plain;
  for (const char c : word) {
    if (absl::ascii_isalpha(static_cast<unsigned char>(c))) plain += absl::ascii_tolower(c);
  }
  if (plain == "spot" || plain == "preemptible") return "spot";
  if (plain == "reserved" || plain == "reservation") return "reserved";
  if (plain == "ondemand" || plain == "standard") return "on_demand";
  return {};
}

double ChipsOf(absl::string_view device_kind, double devices) {
  for (const char* kind : {"TPU v2", "TPU v3", "TPU7", "TPU7x", "TPU8i"}) {
    if (absl::EqualsIgnoreCase(kind, device_kind)) return devices / 2;
  }
  return devices;
}

}  // namespace tacho::server::cost
