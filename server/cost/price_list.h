// What chips and energy cost, as `cost` of the configuration says. docs/cost.md defines it for
// users. Pure.
//
// Money is in units of one currency; nothing is converted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tacho/config/v1/cost.pb.h"

namespace tacho::server::cost {

struct ChipPrice {
  std::string kind;           // As configured.
  std::string capacity_type;  // "any", "on_demand", "reserved" or "spot".
  double per_hour = 0;        // Of one chip.
};

// Immutable: any number of threads.
class PriceList {
 public:
  PriceList() = default;  // Nothing has a price.

  // Of a message that is empty, as in tests, everything has its default.
  //   INVALID_ARGUMENT  the text names the key, what is wrong, and what to do.
  static absl::StatusOr<PriceList> Create(const config::v1::Cost& config);

  // Neither chips nor energy have a price.
  bool empty() const { return chips_.empty() && !per_joule_.has_value(); }
  const std::string& currency() const { return currency_; }  // Empty if the list is.

  // The price of a chip of that kind; null: there is none. `device_kind` is what the job or its
  // agents say. A TPU's kind fits the whole name, another one a part of it, without regard to
  // capitals; the longest kind that fits counts. Of its entries that of `capacity_type` counts,
  // else "any". Where nobody says how the job got its chips (an empty type), "any" counts, else the
  // first entry of the list.
  const ChipPrice* Find(absl::string_view device_kind, absl::string_view capacity_type) const;

  // Price of a joule that was measured: per_kwh x overhead_factor / 3.6e6. nullopt: none.
  std::optional<double> per_joule() const { return per_joule_; }

 private:
  std::string currency_;
  std::vector<ChipPrice> chips_;
  std::optional<double> per_joule_;
};

// "spot", "reserved" or "on_demand" for what schedulers and clouds call it: Karpenter's
// capacity-type, Google's provisioning models, `preemptible`. Empty: another word.
std::string CapacityTypeOf(absl::string_view word);

// Chips among so many devices: frameworks count two on a chip of TPU v2, v3, 7x and 8i (the source
// of goodput/device_peak.h: JAX, `jax/_src/tpu_info.py`).
double ChipsOf(absl::string_view device_kind, double devices);

}  // namespace tacho::server::cost
