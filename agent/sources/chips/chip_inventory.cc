#include "agent/sources/chips/chip_inventory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tacho::agent {
namespace {

bool Contains(std::span<const std::string> all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

ChipInventory::ChipInventory(absl::string_view encoded) {
  for (const absl::string_view line : absl::StrSplit(encoded, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    uint32_t number = 0;
    if (words.first == "most") {
      if (absl::SimpleAtoi(words.second, &number) && number <= kMaxChips) most_ = number;
    } else if (absl::SimpleAtoi(words.first, &number) && !words.second.empty() &&
               FreeChip(number) == number && slots_.size() < kMaxChips) {
      slots_.push_back({number, std::string(words.second)});
    }
  }
  expected_ = most_;
}

std::vector<uint32_t> ChipInventory::Place(std::span<const ChipHere> present, uint32_t expected) {
  present = present.first(std::min(present.size(), kMaxChips));
  most_ = std::max(most_, static_cast<uint32_t>(present.size()));
  expected_ = expected > 0 ? expected : most_;
  std::vector<std::string> places;
  for (const ChipHere& chip : present) places.push_back(chip.place);
  size_t fresh = 0;
  for (const std::string& place : places) {
    fresh += std::none_of(slots_.begin(), slots_.end(),
                          [&](const ChipSlot& slot) { return slot.place == place; })
                 ? 1
                 : 0;
  }
  const size_t most_slots = std::max<size_t>(expected_, present.size());
  Forget(places, most_slots - std::min(most_slots, fresh));
  std::vector<uint32_t> chips;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto known = std::find_if(slots_.begin(), slots_.end(),
                                    [&](const ChipSlot& slot) { return slot.place == places[i]; });
    if (known != slots_.end()) {
      chips.push_back(known->chip);
      continue;
    }
    chips.push_back(FreeChip(present[i].wanted));
    slots_.push_back({chips.back(), places[i]});
  }
  std::sort(slots_.begin(), slots_.end(),
            [](const ChipSlot& a, const ChipSlot& b) { return a.chip < b.chip; });
  return chips;
}

void ChipInventory::Forget(std::span<const std::string> present, size_t keep) {
  for (size_t i = 0; i < slots_.size() && slots_.size() > keep;) {
    if (Contains(present, slots_[i].place)) {
      ++i;
    } else {
      slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

uint32_t ChipInventory::FreeChip(uint32_t wanted) const {
  const auto taken = [this](uint32_t chip) {
    return std::any_of(slots_.begin(), slots_.end(),
                       [chip](const ChipSlot& slot) { return slot.chip == chip; });
  };
  if (!taken(wanted)) return wanted;
  uint32_t chip = 0;
  while (taken(chip)) ++chip;
  return chip;
}

std::string ChipInventory::Encode() const {
  std::string text = absl::StrCat("most ", most_, "\n");
  for (const ChipSlot& slot : slots_) absl::StrAppend(&text, slot.chip, " ", slot.place, "\n");
  return text;
}

}  // namespace tacho::agent
