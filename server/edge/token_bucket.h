// A rate without a thread and without a queue: what is taken is paid for by waiting.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tacho::server::edge {

// Tokens a second; 0 is no limit. A bucket holds `burst_ns` worth of them.
struct Rate {
  uint64_t per_second = 0;
  int64_t burst_ns = 0;
};

// Thread-safe, without a lock. Times are ns of any clock that does not go back.
class TokenBucket {
 public:
  // One taker cannot put the bucket further into debt than this at once.
  static constexpr int64_t kMaxCostNs = int64_t{600} * 1'000'000'000;

  // Takes `tokens`, whether there are so many or not: they have been sent already. Returns how long
  // the taker is to wait before it takes any more; 0 if it need not. Whoever comes while others
  // wait, waits longer: together they keep to the rate.
  int64_t Take(uint64_t tokens, const Rate& rate, int64_t now_ns) {
    if (rate.per_second == 0) return 0;
    const double exact = 1e9 * static_cast<double>(tokens) / static_cast<double>(rate.per_second);
    const auto cost = static_cast<int64_t>(std::min(exact, static_cast<double>(kMaxCostNs)));
    int64_t old = paid_until_ns_.load(std::memory_order_relaxed);
    int64_t paid = 0;
    do {
      paid = std::max(old, now_ns - rate.burst_ns) + cost;
    } while (!paid_until_ns_.compare_exchange_weak(old, paid, std::memory_order_relaxed));
    return std::max<int64_t>(paid - now_ns, 0);
  }

  // Gives back what was taken at this rate.
  void GiveBack(uint64_t tokens, const Rate& rate) {
    if (rate.per_second == 0) return;
    const double exact = 1e9 * static_cast<double>(tokens) / static_cast<double>(rate.per_second);
    const auto cost = static_cast<int64_t>(std::min(exact, static_cast<double>(kMaxCostNs)));
    paid_until_ns_.fetch_sub(cost, std::memory_order_relaxed);
  }

  // As good as new, so that forgetting it changes nothing.
  bool IsFull(const Rate& rate, int64_t now_ns) const {
    return paid_until_ns_.load(std::memory_order_relaxed) <= now_ns - rate.burst_ns;
  }

 private:
  // When all that was taken would have come at the rate.
  std::atomic<int64_t> paid_until_ns_{INT64_MIN};
};

}  // namespace tacho::server::edge
