#include "tests/format/bytes.h"

#include <utility>

namespace format_page {

Bytes::Bytes(std::string name, std::string_view data, Findings* findings)
    : name_(std::move(name)), data_(data), findings_(findings) {}

void Bytes::Fail(const std::string& why) {
  if (ok_) findings_->errors.push_back(name_ + ": " + why);
  ok_ = false;
  data_ = {};
}

void Bytes::ExpectEnd() {
  if (!data_.empty()) Fail(std::to_string(data_.size()) + " bytes too many");
}

std::string_view Bytes::Take(size_t size) {
  if (size > data_.size()) {
    Fail("ends too early");
    return {};
  }
  const std::string_view taken = data_.substr(0, size);
  data_.remove_prefix(size);
  return taken;
}

uint64_t Bytes::Little(size_t bytes) {
  const std::string_view taken = Take(bytes);
  uint64_t number = 0;
  for (size_t i = 0; i < taken.size(); ++i) {
    number |= uint64_t{static_cast<uint8_t>(taken[i])} << (8 * i);
  }
  return number;
}

uint64_t Bytes::Big(size_t bytes) {
  uint64_t number = 0;
  for (const char byte : Take(bytes)) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

int64_t Bytes::KeyTime() { return static_cast<int64_t>(Big(8) ^ uint64_t{1} << 63); }

uint64_t Bytes::Varint() {
  uint64_t number = 0;
  for (unsigned i = 0; i < 10; ++i) {
    const uint8_t byte = Byte();
    number |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) return number;
  }
  Fail("a varint of more than 10 bytes");
  return 0;
}

int64_t Bytes::Zigzag() { return Unzigzag(Varint()); }

std::string Bytes::String() { return std::string(Take(Varint())); }

uint64_t Bytes::Count() {
  const uint64_t count = Varint();
  if (count <= data_.size()) return count;
  Fail("counts more than there can be");
  return 0;
}

uint64_t Bits::Take(unsigned bits) {
  uint64_t number = 0;
  for (unsigned i = 0; i < bits; ++i) {
    if (left_ == 0) {
      byte_ = bytes_->Byte();
      left_ = 8;
    }
    number |= uint64_t{byte_ & 1u} << i;
    byte_ >>= 1;
    --left_;
  }
  return number;
}

int64_t Unzigzag(uint64_t number) {
  return static_cast<int64_t>(number % 2 == 0 ? number / 2 : ~(number / 2));
}

uint32_t Crc32c(std::string_view data) {
  // The polynomial 0x1edc6f41 with its bits reversed; begun with and ended by inverting all bits.
  uint32_t crc = ~uint32_t{0};
  for (const char byte : data) {
    crc ^= static_cast<uint8_t>(byte);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc % 2 == 1 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

}  // namespace format_page
