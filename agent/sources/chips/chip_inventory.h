// Which chip of a machine has which number, and how many there should be: remembered over restarts,
// so that one that fell off the bus is missed and the others keep their labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::agent {

// A chip that is here now.
struct ChipHere {
  std::string place;    // Where it sits: its PCI address, or what else stays. Without line feeds.
  uint32_t wanted = 0;  // The number to give it, if it is new and the number is free.
};

struct ChipSlot {
  uint32_t chip = 0;  // The number in the label.
  std::string place;  // As below.
};

// A number belongs to a place in the machine: a chip that replaces another there takes it.
class ChipInventory {
 public:
  // More than any machine has; a driver that reports more is not believed.
  static constexpr size_t kMaxChips = 64;

  // From what Encode() gave; what of it is damaged is forgotten.
  explicit ChipInventory(absl::string_view encoded);

  // The numbers of the chips that are here now, in their order, which is at most kMaxChips of them.
  // `expected` as in the configuration, 0: not said. Places of missing chips are kept as long as
  // fewer are here than should be.
  std::vector<uint32_t> Place(std::span<const ChipHere> present, uint32_t expected);

  // In order of their chips.
  const std::vector<ChipSlot>& slots() const { return slots_; }
  // As configured, else the most that ever were here at once.
  uint32_t expected() const { return expected_; }
  std::string Encode() const;

 private:
  void Forget(std::span<const std::string> present, size_t keep);
  uint32_t FreeChip(uint32_t wanted) const;

  std::vector<ChipSlot> slots_;
  uint32_t most_ = 0;
  uint32_t expected_ = 0;
};

}  // namespace tacho::agent
